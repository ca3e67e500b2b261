package main

import (
	"bufio"
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/scripts"
	"github.com/semel-dev/semel/internal/assert"
)

func TestEveryScriptHolds(t *testing.T) {
	t.Parallel()
	for _, script := range scripts.List() {
		t.Run(script.Name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := output(t, "demo", "--script="+script.Name, "--json", "--seed=7")
			assert.Equal(t, code, exitDone, "%s%s", stdout, stderr)
			var got scripts.Report
			assert.NoError(t, json.Unmarshal([]byte(stdout), &got))
			assert.True(t, got.Holds, "it holds")
			for _, part := range got.Doors {
				switch {
				case part.Keeps == "memory": // its key was lost, so it is no order with a key
					assert.Equal(t, part.Ledger.Taken, 2*part.Price, "taken where a new key was made")
				case part.Door == payments.Keyed:
					assert.Equal(t, part.Ledger.Taken, part.Price, "taken for one order with a key")
					assert.True(t, part.AnsweredAfter <= scripts.AnswerWithin.Seconds(), "answered within %v, got %f s", scripts.AnswerWithin, part.AnsweredAfter)
				default:
					assert.Equal(t, part.Ledger.Orders, int64(1))
				}
			}
		})
	}
}

func TestWithoutAKeyTheDoubleChargeIsVisible(t *testing.T) {
	t.Parallel()
	for _, name := range []payments.Fault{payments.ReplyLost, payments.KilledAfterCharge} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := output(t, "demo", "--script="+string(name))
			assert.Equal(t, code, exitDone, "%s%s", stdout, stderr)
			assert.Contains(t, stdout, "in 2 charges. The customer paid twice.")
			assert.Contains(t, stdout, "in 1 charge. Right.")
		})
	}
}

func TestAClientThatIsKilledBeforeItReadsTheAnswerIsGivenItAgain(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := output(t, "demo", "--script=client-crash")
	assert.Equal(t, code, exitDone, "%s%s", stdout, stderr)
	assert.Equal(t, strings.Count(stdout, "killed (SIGKILL), the answer unread\n"), 2, "%s", stdout)
	assert.Equal(t, strings.Count(stdout, " finds the intent and sends it again; at "), 1, "%s", stdout)
	assert.Equal(t, strings.Count(stdout, ", replayed\n"), 1, "%s", stdout)
	assert.Contains(t, stdout, "in 1 charge. Right.\n  A client that keeps its intent in memory")
	assert.Contains(t, stdout, " finds none, makes another with a key of its own, and sends it; at ")
	assert.Contains(t, stdout, "1 order, 2 payments;")
	assert.Contains(t, stdout, "in 2 charges. The customer paid twice.")
}

func TestAScriptThatDoesNotHoldExitsWithOne(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := output(t, "demo", "--script=killed-after-charge", "--bank-forgets")
	assert.Equal(t, code, exitFailed)
	assert.Contains(t, stdout, "BROKEN: it should have taken")
	assert.Contains(t, stdout, "The bank was asked again under the same operation id, and did not look at it.")
	assert.Contains(t, stdout, "and took the money 2 times.")
	assert.True(t, !strings.Contains(stdout, "finds the first charge"), "it teaches what was not so: %s", stdout)
	assert.Equal(t, stderr, "semel demo: 1 of 1 scripts did not hold: killed-after-charge\n")

	code, stdout, _ = output(t, "demo", "--script=killed-after-charge", "--bank-forgets", "--json")
	assert.Equal(t, code, exitFailed)
	var got scripts.Report
	assert.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.True(t, !got.Holds && strings.HasPrefix(got.Doors[0].Broken, "it should have taken"), "got %s", stdout)
}

func TestScriptsLeaveTheirDataWhereTheyAreTold(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	code, _, stderr := output(t, "demo", "--script=request-lost", "--data="+data)
	assert.Equal(t, code, exitDone, "%s", stderr)
	code, _, stderr = output(t, "demo", "--script=request-lost", "--data="+data)
	assert.Equal(t, code, exitUsage)
	assert.Contains(t, stderr, "holds a ledger already")
}

func TestAScriptThatIsInterruptedSaysSo(t *testing.T) {
	t.Parallel()
	cmd := program(t, "demo", "--script=all")
	stdout, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	assert.NoError(t, cmd.Start())
	said, err := bufio.NewReader(stdout).ReadString('\n')
	assert.NoError(t, err, "%s", said)
	assert.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	cmd.Wait() //nolint:errcheck // how it ended is in the exit code.
	assert.Equal(t, cmd.ProcessState.ExitCode(), 130)
	assert.Equal(t, stderr.String(), "semel demo: stopped by a signal (interrupt) before it was done\n")
}
