//go:build !race

package foreign

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/semel-dev/semel/check"
	"github.com/semel-dev/semel/internal/assert"
)

// fiberVersion is the version that the table is about.
const fiberVersion = "v3.1.0"

// passOrInconclusive is the result of what depends on whether requests meet.
const passOrInconclusive check.Status = "pass or inconclusive"

// by are the results of the four forms, in the order of the table's columns.
type by [4]check.Status

// results are the cases that one of the forms breaks, or that could not be told of
// it. All forms pass all others of the cases that could run. In Fiber none of these
// depends on who comes first: requests that meet wait for each other.
var results = []struct {
	id   string
	got  by
	note string
}{
	{"mismatch/refused", by{check.Fail, check.Fail, check.Fail, check.Pass}, "The middleware keeps replies by key alone, and gives the first one to any body. There is no setting for it. The draft lets an API choose how it tells requests apart (section 2.4) and asks for an error when one does not fit (2.7). Nothing is charged twice: `mismatch/executes` passes."},
	{"mismatch/status", by{check.Warn, check.Warn, check.Warn, check.Pass}, "Follows from that. SHOULD in the draft."},
	{"body/none", by{check.Fail, check.Fail, check.Fail, check.Pass}, "The same: no body is another body."},
	{"method/other", by{check.Fail, check.Fail, check.Pass, check.Pass}, "The same: method and path are no part of the key, and a `PATCH` that the application does not have is answered with the reply of the `POST`. The third form puts them before the key."},
	{"scope/tenant", by{check.Fail, check.Fail, check.Pass, check.Pass}, "By design: it knows no callers. An application has to make its keys differ from caller to caller before they get here, as the third form does. That a reply must not reach another caller is a level of ours: the draft calls it best practice (section 5)."},
	{"failure/error-again", by{check.Fail, check.Pass, check.Pass, check.Pass}, "By design: what a handler returns as an error is not kept. An error that it writes as a reply is, so the other forms charge once. The draft asks with SHOULD that errors be given again; that the money must not be taken twice is ours."},
	{"key/missing", by{check.Warn, check.Warn, check.Warn, check.Pass}, "By design: it is for requests that have a key. SHOULD in the draft, where the operation requires one."},
	{"key/empty", by{check.Warn, check.Pass, check.Pass, check.Pass}, "The same, for a field without a value. In quotes, as the draft writes keys, an empty one comes to the check of keys."},
	{"key/twice", by{check.Warn, check.Warn, check.Warn, check.Pass}, "One of two lines is read. The draft allows one item."},
	{"key/unterminated", by{check.Warn, check.Pass, check.Pass, check.Pass}, "Refused, and nothing is charged; but with a 500, which asks a client to try again. A check of one's own may refuse with a 400."},
	{"key/non-ascii", by{check.Warn, check.Pass, check.Pass, check.Pass}, "The same."},
	{"key/255", by{check.Warn, check.Pass, check.Pass, check.Pass}, "By design: a key is 36 characters long unless one sets another check. Not in the draft."},
	{"replay/marked", by{check.Warn, check.Warn, check.Warn, check.Pass}, "Nothing in the reply says that it is given again. Not in the draft."},
	{"retention/document", by{check.Warn, check.Warn, check.Warn, check.Pass}, "Where rules are published the draft leaves open; keys live for 30 minutes unless set otherwise."},
	{"key/tail", by{check.Inconclusive, check.Pass, check.Pass, check.Pass}, "In the first form no such key is accepted."},
	{"key/case", by{check.Inconclusive, check.Pass, check.Pass, check.Pass}, "The same."},
	{"key/quotes", by{check.Inconclusive, check.Pass, check.Pass, check.Pass}, "The same."},
	{"concurrency/conflict-status", by{check.Inconclusive, check.Inconclusive, check.Inconclusive, passOrInconclusive}, "Nobody is refused as too early: who comes second waits and gets the first one's reply, which is as good."},
	{"concurrency/retry-after", by{check.Inconclusive, check.Inconclusive, check.Inconclusive, passOrInconclusive}, "The same."},
	{"problem/conflict", by{check.Inconclusive, check.Inconclusive, check.Inconclusive, passOrInconclusive}, "The same."},
	{"problem/missing", by{check.Inconclusive, check.Inconclusive, check.Inconclusive, check.Pass}, "Nothing is refused that could be explained."},
	{"problem/mismatch", by{check.Inconclusive, check.Inconclusive, check.Inconclusive, check.Pass}, "The same."},
	{"problem/told-apart", by{check.Inconclusive, check.Inconclusive, check.Inconclusive, check.Pass}, "The same."},
}

// checked runs every case against a shop, its charges counted.
func checked(t *testing.T, address, keyHeader string, bareKeys bool) *check.Report {
	t.Helper()
	report, err := check.Run(t.Context(), check.Target{
		URL:          address + "/payments",
		Header:       http.Header{"Content-Type": {"application/json"}},
		Body:         []byte(goodBody),
		RefusedBody:  []byte(refusedBody),
		FailingBody:  []byte(failingBody),
		TenantHeader: tenantHeader,
		Tenants:      [2]string{"a", "b"},
		Observe:      &check.Observe{URL: address + "/ledger", Pointer: "/charges"},
		KeyHeader:    keyHeader,
		BareKeys:     bareKeys,
	}, check.Config{})
	assert.NoError(t, err)
	assert.Equal(t, report.Setup, "")
	return report
}

func TestWhatTheCheckFinds(t *testing.T) {
	t.Parallel()
	fibers := func(s shop) func(*testing.T) *check.Report {
		return func(t *testing.T) *check.Report { return checked(t, s.serve(t), s.keyHeader, s.bareKeys) }
	}
	for form, tt := range []struct {
		name  string
		check func(*testing.T) *check.Report
		want  check.Verdict
	}{
		{"in Fiber's middleware without a setting", fibers(asDocumented()), check.Unsafe},
		{"in Fiber's middleware with its settings", fibers(asGoodAsItGets()), check.Unsafe},
		{"in Fiber's middleware with keys per caller", fibers(withKeysPerCaller()), check.Unsafe},
		{"in Semel", func(t *testing.T) *check.Report { return checked(t, serveWithSemel(t), "", false) }, check.Safe},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			report := tt.check(t)
			assert.Equal(t, report.Verdict(), tt.want)
			found := make(map[string]check.Status)
			for _, f := range report.Findings {
				t.Logf("%-12s %-8s %-9s %s: %s", f.Status, f.Case.Level, f.Evidence, f.Case.ID, f.Says)
				if f.Status != check.Told && f.Status != check.Skipped {
					found[f.Case.ID] = f.Status
				}
			}
			for _, want := range results {
				got := found[want.id]
				if want.got[form] == passOrInconclusive && (got == check.Pass || got == check.Inconclusive) {
					got = passOrInconclusive
				}
				assert.Equal(t, got, want.got[form], want.id)
				delete(found, want.id)
			}
			for id, status := range found {
				assert.Equal(t, status, check.Pass, id, "is not in the table, so it passes")
			}
			assert.True(t, len(found) > 30, "%d more cases have run", len(found))
		})
	}
}

// TestTheDocumentShowsTheResults holds the tables of docs/check.md, and the
// version that it speaks of.
func TestTheDocumentShowsTheResults(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../docs/check.md")
	assert.NoError(t, err)
	for _, part := range []string{table(check.Fail), table(check.Warn), untold(), "github.com/gofiber/fiber/v3 " + fiberVersion} {
		if !strings.Contains(string(document), part) {
			t.Errorf("docs/check.md does not hold this:\n%s", part)
		}
	}
	assert.Equal(t, "v"+fiber.Version, fiberVersion, "the version that is checked")
}

// table is that of the cases of which the worst result is status.
func table(status check.Status) string {
	levels := make(map[string]check.Level)
	for _, c := range check.Cases() {
		levels[c.ID] = c.Level
	}
	var b strings.Builder
	b.WriteString("| case | level | without a setting | with settings | keys per caller | Semel | |\n|---|---|---|---|---|---|---|\n")
	for _, row := range results {
		if row.got.worst() == status {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", linked(row.id), levels[row.id], row.got[0], row.got[1], row.got[2], row.got[3], row.note)
		}
	}
	return b.String()
}

// untold lists the other cases.
func untold() string {
	var ids []string
	for _, row := range results {
		if row.got.worst() == check.Inconclusive {
			ids = append(ids, linked(row.id))
		}
	}
	return strings.Join(ids, ", ") + "."
}

func (got by) worst() check.Status {
	for _, status := range []check.Status{check.Fail, check.Warn} {
		if slices.Contains(got[:], status) {
			return status
		}
	}
	return check.Inconclusive
}

func linked(id string) string {
	return fmt.Sprintf("[%s](check-cases.md#%s)", id, strings.ReplaceAll(id, "/", ""))
}
