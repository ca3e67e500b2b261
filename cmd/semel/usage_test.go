package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// runHere runs a command line that starts nothing.
func runHere(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestABadCommandLineExitsWithTwoAndSaysWhatAndWhy(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	assert.NoError(t, os.WriteFile(file, nil, 0o600))
	for line, want := range map[string]string{
		"nope":                      `there is no command "nope"`,
		"--nope":                    "unknown flag: --nope",
		"version extra":             "does not take arguments",
		"version --nope":            "unknown flag: --nope",
		"demo extra":                `does not take arguments, and got ["extra"]`,
		"demo --nope":               "unknown flag: --nope",
		"demo --addr":               "flag needs an argument: --addr",
		"demo --addr=":              `--addr is ""; it must be HOST:PORT`,
		"demo --addr=localhost":     `--addr is "localhost"; it must be HOST:PORT`,
		"demo --addr=localhost:web": "the port must be a number from 0 to 65535",
		"demo --addr=[::1]:99999":   "the port must be a number from 0 to 65535",
		"demo --data=" + file:       "which is not a directory",
		"demo --seed=seven":         `invalid argument "seven" for "--seed"`,
		"demo --seed=-1":            "it must be a whole number from 0 to",
		"demo --seed=1e3":           "it must be a whole number from 0 to",
		"demo --script=earthquake":  `there is no script "earthquake"; there are request-lost`,
		"demo --script=":            `--script is empty`,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runHere(t, strings.Fields(line)...)
			assert.Equal(t, code, exitUsage)
			assert.Equal(t, stdout, "")
			assert.Contains(t, stderr, want)
			assert.Contains(t, stderr, "--help")
		})
	}
}

func TestScriptsRefuseADirectoryWithALedgerWhateverItsName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain", "[y", "a*?", `back\slash`} {
		data := filepath.Join(t.TempDir(), name)
		assert.NoError(t, os.Mkdir(data, 0o700))
		assert.NoError(t, os.WriteFile(filepath.Join(data, "shop.db"), nil, 0o600))
		code, _, stderr := runHere(t, "demo", "--script=request-lost", "--data="+data)
		assert.Equal(t, code, exitUsage, "%s", name)
		assert.Contains(t, stderr, "holds a ledger already", "%s", name)
	}
}

func TestHelpTeaches(t *testing.T) {
	t.Parallel()
	for line, wants := range map[string][]string{
		"":            {"semel demo", "Usage:"},
		"--help":      {"semel demo", "Usage:"},
		"demo --help": {"three tills", "Idempotency-Key: my-first-key", "/unsafe/payments", "killed-after-charge", "client-crash", "--script all", "HOST:PORT", "demo --store postgres://", "$SEMEL_DEMO_STORE"},
	} {
		code, stdout, stderr := runHere(t, strings.Fields(line)...)
		assert.Equal(t, code, exitDone)
		assert.Equal(t, stderr, "")
		for _, want := range wants {
			assert.Contains(t, stdout, want, "semel %s", line)
		}
		assert.True(t, !strings.Contains(stdout, demoProcessName), "what only the demo calls is not shown")
	}
}

func TestVersionIsReadable(t *testing.T) {
	t.Parallel()
	code, line, _ := runHere(t, "version")
	assert.Equal(t, code, exitDone)
	assert.Contains(t, line, "semel ")
	assert.True(t, !strings.Contains(line, " ,"), "no space before a comma, got %q", line)
	code, stdout, stderr := runHere(t, "--version")
	assert.Equal(t, code, exitDone)
	assert.Equal(t, stdout, line)
	assert.Equal(t, stderr, "")
	code, stdout, _ = runHere(t, "version", "--json")
	assert.Equal(t, code, exitDone)
	var v versionInfo
	assert.NoError(t, json.Unmarshal([]byte(stdout), &v))
	assert.True(t, strings.HasPrefix(v.Go, "go1."), "go version, got %s", v.Go)
}
