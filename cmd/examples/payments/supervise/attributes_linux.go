package supervise

import "syscall"

// attributes makes the operating system kill a child whose supervisor is gone,
// also one that is stopped and cannot see its standard input end.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
