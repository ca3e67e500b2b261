package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/check/brokentest"
	"github.com/semel-dev/semel/internal/assert"
)

func TestACommandForAuthorizationEndsWithTheCheckAndSoDoesWhatItHasStarted(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"sleep 300 | cat", "sleep 300; echo", "exec sleep 300"} {
		alive := filepath.Join(t.TempDir(), "alive")
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := askCommand(ctx, "touch "+alive+"; "+command)
			failed <- err
		}()
		assert.Eventually(t, "it is at work", func() bool { _, err := os.Stat(alive); return err == nil })
		cancel()
		select {
		case err := <-failed:
			assert.ErrorIs(t, err, context.Canceled)
		case <-time.After(time.Minute):
			t.Fatalf("%s: still at work", command)
		}
	}
}

func TestWhatACommandForAuthorizationPrintsIsReadWithinBoundsAndNotShown(t *testing.T) {
	t.Parallel()
	got, err := askCommand(t.Context(), "echo 'Authorization: Bearer x'; echo 'X-Proof:  y '")
	assert.NoError(t, err)
	assert.Equal(t, got.Get("Authorization"), "Bearer x")
	assert.Equal(t, got.Get("X-Proof"), "y")
	for command, says := range map[string]string{
		"echo s3cret":                             "number 1 has no name before a colon",
		"echo s3cret >&2; exit 3":                 "exit status 3",
		"yes s3cret | head -c 1000000":            "prints more than 65536 bytes",
		"yes s3cret | head -c 1000000 >&2; false": "exit status 1",
		"sleep 300 &":                             "holds its output open",
	} {
		_, err := askCommand(t.Context(), command)
		assert.True(t, err != nil, "%s", command)
		assert.Contains(t, err.Error(), says)
		assert.True(t, len(err.Error()) < 400, "%d bytes of complaint", len(err.Error()))
	}
}

func TestACheckWhoseReportCannotBeWrittenSendsNothing(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := checked(t, brokentest.None, "--report=json="+filepath.Join(t.TempDir(), "missing", "r.json"))
	assert.Equal(t, code, exitUsage)
	assert.Equal(t, stdout, "")
	assert.Contains(t, stderr, "--report: open ")
}

func TestAFileOfOperationsThatStandsInItselfIsRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"operations: &o [*o]":                           "aliases (*) are not read here",
		"operations: &o\n- *o":                          "aliases (*) are not read here",
		"operations: " + strings.Repeat("[", 100000):    "brackets stand more than 20 deep",
		"operations: " + strings.Repeat("{a: ", 100000): "brackets stand more than 20 deep",
	} {
		code, _, stderr := runHere(t, "check", "--config", write(t, "c.yaml", "", text))
		assert.Equal(t, code, exitUsage)
		assert.Contains(t, stderr, says)
	}
}
