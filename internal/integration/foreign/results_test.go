//go:build !race

package foreign

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/semel-dev/semel/check"
	"github.com/semel-dev/semel/internal/assert"
)

// fiberVersion is the version that the table is about.
const fiberVersion = "v3.1.0"

// results are the cases that a shop breaks in one of its two forms, or that could
// not be told. Both forms pass all others of the cases that could run. None of
// these depends on who comes first: requests that meet wait for each other.
var results = []struct {
	id                         string
	asDocumented, asGoodAsGets check.Status
	note                       string
}{
	{"mismatch/refused", check.Fail, check.Fail, "The middleware keeps replies by key alone, and gives the first one to any body. There is no setting for it. The draft lets an API choose how it tells requests apart (section 2.4) and asks for an error when one does not fit (2.7). Nothing is charged twice: `mismatch/executes` passes."},
	{"mismatch/status", check.Warn, check.Warn, "Follows from that. SHOULD in the draft."},
	{"body/none", check.Fail, check.Fail, "The same: no body is another body."},
	{"method/other", check.Fail, check.Fail, "The same: method and path are no part of the key, and a `PATCH` that the application does not have is answered with the reply of the `POST`."},
	{"scope/tenant", check.Fail, check.Fail, "By design: it knows no callers. An application has to make its keys differ from caller to caller before they get here. That a reply must not reach another caller is a level of ours: the draft calls it best practice (section 5)."},
	{"failure/error-again", check.Fail, check.Pass, "By design: what a handler returns as an error is not kept. An error that it writes as a reply is, so the second form charges once. The draft asks with SHOULD that errors be given again; that the money must not be taken twice is ours."},
	{"key/missing", check.Warn, check.Warn, "By design: it is for requests that have a key. SHOULD in the draft, where the operation requires one."},
	{"key/empty", check.Warn, check.Pass, "The same, for a field without a value. In quotes, as the draft writes keys, an empty one comes to the check of keys."},
	{"key/twice", check.Warn, check.Warn, "One of two lines is read. The draft allows one item."},
	{"key/unterminated", check.Warn, check.Pass, "Refused, and nothing is charged; but with a 500, which asks a client to try again. A check of one's own may refuse with a 400."},
	{"key/non-ascii", check.Warn, check.Pass, "The same."},
	{"key/255", check.Warn, check.Pass, "By design: a key is 36 characters long unless one sets another check. Not in the draft."},
	{"replay/marked", check.Warn, check.Warn, "Nothing in the reply says that it is given again. Not in the draft."},
	{"retention/document", check.Warn, check.Warn, "Where rules are published the draft leaves open; keys live for 30 minutes unless set otherwise."},

	{"key/tail", check.Inconclusive, check.Pass, "In the first form no such key is accepted."},
	{"key/case", check.Inconclusive, check.Pass, "The same."},
	{"key/quotes", check.Inconclusive, check.Pass, "The same."},
	{"concurrency/conflict-status", check.Inconclusive, check.Inconclusive, "Nobody is refused as too early: who comes second waits and gets the first one's reply, which is as good."},
	{"concurrency/retry-after", check.Inconclusive, check.Inconclusive, "The same."},
	{"problem/conflict", check.Inconclusive, check.Inconclusive, "The same."},
	{"problem/missing", check.Inconclusive, check.Inconclusive, "Nothing is refused that could be explained."},
	{"problem/mismatch", check.Inconclusive, check.Inconclusive, "The same."},
	{"problem/told-apart", check.Inconclusive, check.Inconclusive, "The same."},
}

// checked runs every case against the shop, its charges counted.
func (s shop) checked(t *testing.T) map[string]check.Status {
	t.Helper()
	address := s.serve(t)
	report, err := check.Run(t.Context(), check.Target{
		URL:          address + "/payments",
		Header:       http.Header{"Content-Type": {"application/json"}},
		Body:         []byte(goodBody),
		RefusedBody:  []byte(refusedBody),
		FailingBody:  []byte(failingBody),
		TenantHeader: "X-Tenant",
		Tenants:      [2]string{"a", "b"},
		Observe:      &check.Observe{URL: address + "/ledger", Pointer: "/charges"},
		KeyHeader:    s.keyHeader,
		BareKeys:     s.bareKeys,
	}, check.Config{})
	assert.NoError(t, err)
	assert.Equal(t, report.Setup, "")
	assert.Equal(t, report.Verdict(), check.Unsafe)
	found := make(map[string]check.Status)
	for _, f := range report.Findings {
		t.Logf("%-12s %-8s %-9s %s: %s", f.Status, f.Case.Level, f.Evidence, f.Case.ID, f.Says)
		if f.Status != check.Told && f.Status != check.Skipped {
			found[f.Case.ID] = f.Status
		}
	}
	return found
}

func TestWhatTheCheckFindsInFibersMiddleware(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]struct {
		shop shop
		want func(row int) check.Status
	}{
		"without a setting":    {asDocumented(), func(row int) check.Status { return results[row].asDocumented }},
		"as good as it can be": {asGoodAsItGets(), func(row int) check.Status { return results[row].asGoodAsGets }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := form.shop.checked(t)
			for row, want := range results {
				assert.Equal(t, found[want.id], form.want(row), want.id)
				delete(found, want.id)
			}
			for id, status := range found {
				assert.Equal(t, status, check.Pass, id, "is not in the table, so it passes")
			}
			assert.True(t, len(found) > 30, "%d more cases have run", len(found))
		})
	}
}

// TestTheDocumentShowsTheResults holds the table of docs/check.md, and the
// version that it speaks of.
func TestTheDocumentShowsTheResults(t *testing.T) {
	t.Parallel()
	levels := make(map[string]check.Level)
	for _, c := range check.Cases() {
		levels[c.ID] = c.Level
	}
	var table strings.Builder
	table.WriteString("| case | level | without a setting | at its best | |\n|---|---|---|---|---|\n")
	for _, row := range results {
		fmt.Fprintf(&table, "| [%s](check-cases.md#%s) | %s | %s | %s | %s |\n", row.id, strings.ReplaceAll(row.id, "/", ""), levels[row.id], row.asDocumented, row.asGoodAsGets, row.note)
	}
	document, err := os.ReadFile("../../../docs/check.md")
	assert.NoError(t, err)
	for _, part := range []string{table.String(), "github.com/gofiber/fiber/v3 " + fiberVersion} {
		if !strings.Contains(string(document), part) {
			t.Errorf("docs/check.md does not hold this:\n%s", part)
		}
	}
	assert.Equal(t, "v"+fiber.Version, fiberVersion, "the version that is checked")
}
