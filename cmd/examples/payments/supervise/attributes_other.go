//go:build !linux

package supervise

import "syscall"

// attributes are none: a child sees its standard input end.
func attributes() *syscall.SysProcAttr { return nil }
