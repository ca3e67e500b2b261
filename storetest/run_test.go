package storetest_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/storetest"
)

// brokenVariable names the store that TestSubject runs the suite on, in a
// process of its own, since its failures are wanted.
const brokenVariable = "SEMEL_STORETEST_BROKEN"

func allBroken() []broken {
	return slices.Concat(brokenBegins, brokenEnds, brokenReplies, brokenSettlements, brokenAtomicStores, brokenAbilities)
}

// TestSubject runs the suite on the reference store, which passes, or on the
// broken store that the environment names.
func TestSubject(t *testing.T) {
	t.Parallel()
	name := os.Getenv(brokenVariable)
	wrap := func(s *reference) semel.Store { return s }
	for _, b := range allBroken() {
		if b.name == name {
			wrap, name = b.wrap, ""
		}
	}
	if name != "" {
		t.Fatalf("there is no broken store %q", name)
	}
	storetest.Run(t, harness(wrap))
}

// TestBrokenStores runs the suite on each broken store and checks that the
// rules that are there to catch it do, and that there is no rule that none of
// them breaks: a test that nothing can fail tests nothing.
func TestBrokenStores(t *testing.T) {
	t.Parallel()
	assert.LeaveToPlainRun(t, "what breaks a broken store is no race")
	var (
		mu     sync.Mutex
		caught = map[string]bool{}
	)
	t.Cleanup(func() {
		for rule := range runSuite(t, "TestSubject", "").passed {
			assert.True(t, caught[rule], "some broken store fails the rule %q", rule)
		}
	})
	for _, b := range allBroken() {
		assert.True(t, len(b.caughtBy) > 0, "%q says what catches it", b.name)
		t.Run(b.name+" is caught", func(t *testing.T) {
			t.Parallel()
			run := runSuite(t, "TestSubject", b.name)
			assert.True(t, len(run.failed) > 0, "some rule fails")
			for _, rule := range b.caughtBy {
				assert.True(t, run.failed[testName(rule)], "the rule %q fails", rule)
			}
			if t.Failed() {
				t.Logf("output of the suite:\n%s", run.output)
			}
			mu.Lock()
			defer mu.Unlock()
			for rule := range run.failed {
				caught[rule] = true
			}
		})
	}
}

// testName is a subtest's name as go test prints it.
func testName(name string) string { return strings.ReplaceAll(name, " ", "_") }

// suiteRun is what came of the suite in a process of its own. Rules are
// named "chapter/rule", in the spelling of testName.
type suiteRun struct {
	passed, failed map[string]bool
	output         string
}

var ruleLine = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL): Test[^/]+/(\S+/\S+) \(`)

func runSuite(t *testing.T, test, brokenStore string) suiteRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+strings.ReplaceAll(test, "/", "$/^"), "-test.v", "-test.timeout=9m")
	cmd.Env = append(os.Environ(), brokenVariable+"="+brokenStore)
	out, err := cmd.CombinedOutput()
	run := suiteRun{passed: map[string]bool{}, failed: map[string]bool{}, output: string(out)}
	if strings.Contains(run.output, "panic:") || (err == nil) != (brokenStore == "") {
		t.Fatalf("the suite on the store %q: %v\n%s", brokenStore, err, out)
	}
	for _, m := range ruleLine.FindAllStringSubmatch(run.output, -1) {
		if m[1] == "PASS" {
			run.passed[m[2]] = true
		} else {
			run.failed[m[2]] = true
		}
	}
	return run
}
