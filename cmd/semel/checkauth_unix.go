//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endTogether makes a command's end, when its context ends, that of all it has
// started: a shell leaves its pipes running.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
