//go:build unix

package storetest

import (
	"fmt"
	"os"
	"syscall"
)

// freeze stops p and waits until it stands: SIGSTOP takes effect some time
// after it was sent, and until then the process goes on.
func freeze(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil); err != nil {
		return err
	}
	if !status.Stopped() {
		return fmt.Errorf("process %d ended instead of stopping: %v", p.Pid, status)
	}
	return nil
}

func thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
