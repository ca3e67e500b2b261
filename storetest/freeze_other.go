//go:build !unix

package storetest

import (
	"errors"
	"os"
)

var errNoSignals = errors.New("this system cannot freeze a process; name Processes in Harness.Lacks")

func freeze(*os.Process) error { return errNoSignals }
func thaw(*os.Process) error   { return errNoSignals }
