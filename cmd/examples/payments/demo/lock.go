package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// lockFile is locked by the demo that has the directory, and says which that is.
const lockFile = "demo.lock"

// lockData keeps other demos out of the data directory until close, or until
// this process ends: two would count each other's money.
func (d *Demo) lockData() error {
	f, err := os.OpenFile(filepath.Join(d.data, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	free, err := tryLock(f)
	if err == nil && !free {
		owner, readErr := io.ReadAll(io.LimitReader(f, 200))
		err = errors.Join(fmt.Errorf("%s is in use by a demo that is running (%s): stop that one, or give another directory with --data", d.data, harmless(string(owner))), readErr)
	}
	if err == nil {
		err = d.signLock(f)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	d.lock = f
	return nil
}

// signLock writes down who has the directory.
func (d *Demo) signLock(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := fmt.Fprintf(f, "%s, process %d", d.URL(), os.Getpid())
	return err
}
