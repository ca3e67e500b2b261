//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package semelclient

import (
	"errors"
	"os"
)

// tryLock is not to be had here.
func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }

func waitLock(*os.File) error { return errors.ErrUnsupported }

func unlock(*os.File) error { return errors.ErrUnsupported }
