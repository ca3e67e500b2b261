//go:build unix

package services

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// MissingError says which program is not installed.
type MissingError struct{ Program string }

// Error names the program and what installs it.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is not installed (as root on Debian, `make services` installs it)", e.Program)
}

// folders are where server programs are, beside those of PATH: users other
// than root often have no sbin in theirs.
var folders = []string{"/usr/sbin", "/usr/local/sbin"}

// find returns the path of a program, or a *MissingError.
func find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, folder := range folders {
		if path, err := exec.LookPath(filepath.Join(folder, program)); err == nil {
			return path, nil
		}
	}
	return "", &MissingError{program}
}

// findPostgres returns the path of a program of PostgreSQL: that of the newest
// version that Debian installed, or the one on PATH.
func findPostgres(program string) (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	if err != nil || len(found) == 0 {
		return find(program)
	}
	return slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }), nil
}

// version returns the one in /usr/lib/postgresql/VERSION/bin/PROGRAM, and zero
// for what is none.
func version(path string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	if err != nil {
		return 0
	}
	return n
}
