package storetest_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/storetest"
)

// brokenVariable names the store that TestSubject runs the suite on, in a
// process of its own, since its failures are wanted.
const brokenVariable = "SEMEL_STORETEST_BROKEN"

// TestSubject runs the suite on the reference store, which passes, or on the
// broken store that the environment names.
func TestSubject(t *testing.T) {
	t.Parallel()
	name := os.Getenv(brokenVariable)
	wrap := func(s *reference) semel.Store { return s }
	for _, b := range brokenStores {
		if b.name == name {
			wrap = b.wrap
			name = ""
		}
	}
	if name != "" {
		t.Fatalf("there is no broken store %q", name)
	}
	storetest.Run(t, harness(wrap))
}

// TestBrokenStores runs the suite on each broken store and checks that the
// rules that are there to catch it do.
func TestBrokenStores(t *testing.T) {
	t.Parallel()
	for _, b := range brokenStores {
		t.Run(b.name+" is caught", func(t *testing.T) {
			t.Parallel()
			failed, output := failedRules(t, b.name)
			for _, rule := range b.caughtBy {
				if !failed[testName(rule)] {
					t.Errorf("got the rule %q passed, want it to fail", rule)
				}
			}
			if t.Failed() {
				t.Logf("output of the suite:\n%s", output)
			}
		})
	}
}

// testName is a subtest's name as go test prints it.
func testName(name string) string { return strings.ReplaceAll(name, " ", "_") }

var failLine = regexp.MustCompile(`(?m)^\s*--- FAIL: TestSubject/(\S+) \(`)

// failedRules runs TestSubject on a broken store and returns what failed.
func failedRules(t *testing.T, name string) (failed map[string]bool, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSubject$", "-test.v", "-test.timeout=90s")
	cmd.Env = append(os.Environ(), brokenVariable+"="+name)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the suite passes a store with the fault %q", name)
	}
	if strings.Contains(string(out), "panic:") {
		t.Fatalf("the suite broke off:\n%s", out)
	}
	failed = map[string]bool{}
	for _, m := range failLine.FindAllStringSubmatch(string(out), -1) {
		failed[m[1]] = true
	}
	return failed, string(out)
}

func TestHarness(t *testing.T) {
	t.Parallel()
	t.Run("the broken stores have names of their own", func(t *testing.T) {
		t.Parallel()
		seen := map[string]bool{}
		for _, b := range brokenStores {
			assert.True(t, !seen[b.name], "the name %q is new", b.name)
			assert.True(t, len(b.caughtBy) > 0, "%q says what catches it", b.name)
			seen[b.name] = true
		}
	})
}
