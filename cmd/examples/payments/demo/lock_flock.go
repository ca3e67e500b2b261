//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package demo

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file, if nobody has it locked, until it is closed or the
// process ends.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
