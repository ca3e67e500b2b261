//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package semelclient

import (
	"errors"
	"os"
	"syscall"
)

// flock locks or unlocks a file, which stays open for as long as that takes.
func flock(f *os.File, how int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	err = conn.Control(func(fd uintptr) { done = syscall.Flock(int(fd), how) })
	return errors.Join(err, done)
}

// tryLock locks a file, if nobody has it locked, until it is closed or the
// process ends.
func tryLock(f *os.File) (bool, error) {
	err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// waitLock locks a file as soon as nobody has it locked.
func waitLock(f *os.File) error {
	for {
		err := flock(f, syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// unlock undoes either.
func unlock(f *os.File) error { return flock(f, syscall.LOCK_UN) }
