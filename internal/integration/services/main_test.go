//go:build unix

package services_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
)

// roleVariable makes the test program the user of servers that it names.
const roleVariable = "SEMEL_SERVICES_ROLE"

// roles are the ways in which such a process ends.
var roles = map[string]func(){
	"ends":  services.End,
	"waits": func() { select {} },
}

func TestMain(m *testing.M) {
	name := os.Getenv(roleVariable)
	if name == "" {
		os.Exit(services.Main(m))
	}
	if err := startAll(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	roles[name]()
}

// startAll starts the servers that differ in how they end, and says on each
// line where one listens.
func startAll(w io.Writer) error {
	p, err := services.StartPostgres()
	if err != nil {
		return err
	}
	b, err := services.StartPgBouncer(p)
	if err != nil {
		return err
	}
	r, err := services.StartRedis()
	if err != nil {
		return err
	}
	m, err := services.StartMariaDB()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, p.Addr(), b.Addr(), r.Addr(), m.Addr())
	return err
}

func TestNothingOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	// They skip this test where one of the programs is missing.
	services.SharedPgBouncer(t)
	services.SharedRedis(t)
	services.SharedMariaDB(t)
	for name, c := range map[string]struct{ role, want string }{
		"that ends":      {"ends", "exit status 0"},
		"that is killed": {"waits", "signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temp := t.TempDir()
			for _, folder := range []string{temp, filepath.Dir(temp)} {
				assert.NoError(t, os.Chmod(folder, 0o711)) //nolint:gosec // the servers' user passes through
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), roleVariable+"="+c.role, "TMPDIR="+temp)
			cmd.Stderr = t.Output()
			stdout, err := cmd.StdoutPipe()
			assert.NoError(t, err)
			assert.NoError(t, cmd.Start())
			addrs := make([]string, 4)
			_, err = fmt.Fscanln(bufio.NewReader(stdout), &addrs[0], &addrs[1], &addrs[2], &addrs[3])
			assert.NoError(t, err)
			if c.role == "waits" {
				assert.NoError(t, cmd.Process.Kill())
			}
			cmd.Wait() //nolint:errcheck // the state says it
			assert.Equal(t, cmd.ProcessState.String(), c.want)

			left := func() bool {
				found, err := filepath.Glob(filepath.Join(temp, "semel-services-*"))
				assert.NoError(t, err)
				for _, addr := range addrs {
					if listens(t, addr) {
						found = append(found, addr)
					}
				}
				return len(found) > 0
			}
			if c.role == "ends" {
				assert.True(t, !left(), "a server or its folder is there when its process has ended")
				return
			}
			assert.Eventually(t, "no server listens and their folder is gone", func() bool { return !left() })
		})
	}
}
