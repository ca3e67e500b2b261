package semelhttp

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
)

const problemsFile = "../docs/problems.md"

func TestProblemsDocument(t *testing.T) {
	t.Parallel()
	t.Run("docs/problems.md is what the table says (go test ./semelhttp -update rewrites it)", func(t *testing.T) {
		t.Parallel()
		want := problemsDocument()
		if flag.Lookup("update").Value.String() == "true" {
			assert.NoError(t, os.WriteFile(problemsFile, []byte(want), 0o600))
		}
		got, err := os.ReadFile(problemsFile)
		assert.NoError(t, err)
		assert.True(t, string(got) == want, "%s differs from the table; run go test ./semelhttp -update", problemsFile)
	})
}

func TestProblemTable(t *testing.T) {
	t.Parallel()

	t.Run("Every row is complete, and its code is in it once", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, len(problemByCode), len(problemTypes))
		for _, p := range problemTypes {
			assert.True(t, http.StatusText(p.status) != "" && p.status >= 400, "%s has a status", p.code)
			for name, text := range map[string]string{"outcome": p.outcome, "title": p.title, "meaning": p.meaning, "advice": p.advice} {
				assert.True(t, text != "", "%s has a %s", p.code, name)
			}
			if p.status == http.StatusServiceUnavailable {
				assert.True(t, p.wait >= time.Second, "%s says when to come again", p.code)
			}
		}
	})

	t.Run("Where nobody knows how it ended, the same key may be sent again: that runs nothing that is held", func(t *testing.T) {
		t.Parallel()
		for _, p := range problemTypes {
			if p.outcome == outcomeUnknown || p.or == outcomeUnknown {
				assert.True(t, p.retry && p.wait >= time.Second, "%s says when to come again", p.code)
			}
		}
	})

	t.Run("A code that is not in the table is answered as an error", func(t *testing.T) {
		t.Parallel()
		store, err := memstore.New(memstore.Config{})
		assert.NoError(t, err)
		g, err := semel.New(store, semel.Hold(), semel.Config{})
		assert.NoError(t, err)
		m, err := New(g, func(*http.Request) (string, error) { return "all", nil }, Config{ProblemBase: "https://shop.test/errors/"})
		assert.NoError(t, err)
		w := httptest.NewRecorder()
		m.WriteProblem(w, "no-such", "")
		assert.Equal(t, w.Code, http.StatusInternalServerError)
		w = httptest.NewRecorder()
		m.WriteProblem(w, ProblemUpstreamUnknown, "the line broke")
		assert.Equal(t, w.Code, http.StatusBadGateway)
		assert.Equal(t, w.Body.String(), `{"type":"https://shop.test/errors/upstream-unknown","title":"The service gave no whole reply",`+
			`"status":502,"detail":"the line broke","code":"upstream-unknown","retry":true}`+"\n")
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	t.Run("Seconds are rounded up, and are at least 1", func(t *testing.T) {
		t.Parallel()
		for d, want := range map[time.Duration]string{
			-time.Second: "1", 0: "1", time.Millisecond: "1", time.Second: "1",
			time.Second + 1: "2", 90 * time.Second: "90",
		} {
			assert.Equal(t, retryAfter(d), want, "%v", d)
		}
	})
}

// problemsDocument writes the table for people.
func problemsDocument() string {
	var b strings.Builder
	b.WriteString(`# Error answers

<!-- Generated from the table in semelhttp/table.go by "go test ./semelhttp -update". Do not edit. -->

Every error that Semel itself answers is a problem (RFC 9457, ` + "`application/problem+json`" + `). Its ` + "`type`" + ` is the address of a
section below; ` + "`code`" + ` is the name to test for; ` + "`retry`" + ` says whether the same request may be sent again *with the same key*.
It may also where nobody knows how the first try ended: a repeat runs only where the service resumes such operations, and
is answered ` + "`outcome-unknown`" + ` where it holds them. Answers that come from the service behind Semel are not listed here:
Semel does not change them.

A new key is a new operation. Use one when you want something done that was not asked for before, never to get past an
error: the first request may have taken effect, and then it is done twice.

` + "`Semel-Outcome`" + ` says what became of this request, and not of the key: ` + "`released`" + ` is a request that is known to have had no
effect, also where it had no key that could be released. Codes marked with * are answered by parts of Semel that are not in
this version.

| code | status | retry | Retry-After | Semel-Outcome |
|---|---|---|---|---|
`)
	for _, p := range problemTypes {
		outcome, retry, later := p.outcome, "no", ""
		if p.retry {
			retry = "yes"
		}
		if p.or != "" {
			outcome += " or " + p.or
		}
		if p.from != "" {
			later = " *"
		}
		fmt.Fprintf(&b, "| [`%s`](#%s)%s | %d | %s | %s | %s |\n", p.code, p.code, later, p.status, retry, shownWait(&p), outcome)
	}
	for _, p := range problemTypes {
		fmt.Fprintf(&b, "\n## %s\n\n**%d %s. %s.**", p.code, p.status, http.StatusText(p.status), p.title)
		if p.from != "" {
			fmt.Fprintf(&b, " Answered by: %s (not in this version).", p.from)
		}
		fmt.Fprintf(&b, "\n\n%s\n\nWhat to do: %s\n", p.meaning, p.advice)
	}
	return b.String()
}

// shownWait is the Retry-After of an answer, where it has one.
func shownWait(p *problemType) string {
	switch {
	case p.code == ProblemInProgress:
		return "from the running attempt"
	case p.wait == 0:
		return "–"
	}
	return retryAfter(p.wait) + " s"
}
