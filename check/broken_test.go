package check

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/semel-dev/semel/check/brokentest"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/memhttp"
)

// breaks are the cases that each broken server breaks, and those of them that
// only show when effects are counted.
var breaks = []struct {
	mistake       brokentest.Mistake
	seen, counted string
}{
	{brokentest.None, "", ""},
	{brokentest.IgnoresTheKey, `body/chunked concurrency/10 concurrency/2 concurrency/64 concurrency/settles header/location
		json/escapes json/member-order json/unknown-member json/whitespace key/255 key/quotes lost/reply lost/reply-cut lost/stalled
		mismatch/at-once mismatch/executes mismatch/no-harm mismatch/refused mismatch/status
		replay/body replay/executes replay/marked replay/others-between replay/ten`, "lost/client-gone lost/reset"},
	{brokentest.LooksFirst, "concurrency/10 concurrency/2 concurrency/64 concurrency/settles mismatch/at-once", "lost/client-gone lost/reset"},
	{brokentest.IgnoresTheBody, "body/none mismatch/refused mismatch/status", ""},
	{brokentest.TakesTheBodyIntoTheKey, `json/escapes json/member-order json/unknown-member json/whitespace
		mismatch/at-once mismatch/executes mismatch/refused mismatch/status`, ""},
	{brokentest.FreesTheKeyOnMisuse, "mismatch/at-once mismatch/executes mismatch/no-harm", ""},
	{brokentest.KeepsFewKeys, "replay/others-between", ""},
	{brokentest.ReplaysOnce, "mismatch/at-once replay/ten", ""},
	{brokentest.ComparesKeysCaseBlind, "key/case", ""},
	{brokentest.CutsKeysOff, "key/tail", ""},
	{brokentest.KeepsTheQuotes, "key/quotes", ""},
	{brokentest.TakesTheFirstKey, "key/twice", ""},
	{brokentest.AllowsNoKey, "key/missing retention/required", ""},
	{brokentest.SharesKeysAmongCallers, "scope/tenant", ""},
	{brokentest.RepliesToAnybody, "scope/authorization", ""},
	{brokentest.FailsWhenBusy, "concurrency/answers lost/client-gone lost/reset", ""},
	{brokentest.StopsWithItsClient, "", "lost/client-gone lost/reset"},
	{brokentest.TakesHalfABody, "lost/request-cut", ""},
	{brokentest.ForgetsLocation, "header/location", ""},
	{brokentest.OrdersByGet, "method/get method/get-executes", ""},
}

func TestEachMistakeBreaksItsOwnCases(t *testing.T) {
	t.Parallel()
	for _, tt := range breaks {
		t.Run("A server that "+string(tt.mistake), func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, brokenCases(t, tt.mistake, false), sorted(tt.seen), "by the replies")
			assert.Equal(t, brokenCases(t, tt.mistake, true), sorted(tt.seen+" "+tt.counted), "by counting")
		})
	}
}

func sorted(ids string) string {
	all := strings.Fields(ids)
	slices.Sort(all)
	return strings.Join(all, " ")
}

func brokenCases(t *testing.T, m brokentest.Mistake, counted bool) (broken string) {
	synctest.Test(t, func(t *testing.T) {
		srv := memhttp.New(t, brokentest.New(m))
		target := Target{
			URL:          srv.URL() + brokentest.OrdersPath,
			Header:       http.Header{"Authorization": {brokentest.BearerToken}, "Content-Type": {"application/json"}},
			Body:         []byte(`{"amount":2500,"currency":"USD"}`),
			TenantHeader: brokentest.TenantHeader,
			Tenants:      [2]string{"a", "b"},
		}
		if counted {
			target.Observe = &Observe{URL: srv.URL() + brokentest.EffectsPath, Pointer: "/orders"}
		}
		report, err := Run(t.Context(), target, Config{DialContextFunc: func(context.Context, string, string) (net.Conn, error) { return srv.Dial() }})
		assert.NoError(t, err)
		assert.Equal(t, report.Setup, "")
		var ids []string
		for _, f := range report.Findings {
			t.Logf("%-12s %-9s %s: %s", f.Status, f.Evidence, f.Case.ID, f.Says)
			if f.Status == Fail || f.Status == Warn {
				ids = append(ids, f.Case.ID)
			}
		}
		broken = sorted(strings.Join(ids, " "))
	})
	return broken
}

func TestARaceThatALimitTurnsAwayTellsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := brokentest.New(brokentest.LooksFirst)
		one := make(chan struct{}, 1) // the limit: one request at a time
		srv := memhttp.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case one <- struct{}{}:
				defer func() { <-one }()
				api.ServeHTTP(w, r)
			default:
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}))
		target := Target{
			URL:    srv.URL() + brokentest.OrdersPath,
			Header: http.Header{"Authorization": {brokentest.BearerToken}, "Content-Type": {"application/json"}},
			Body:   []byte(`{"amount":2500,"currency":"USD"}`),
		}
		raced := []string{"concurrency/2", "concurrency/10", "concurrency/64", "concurrency/settles", "mismatch/at-once"}
		report, err := Run(t.Context(), target, Config{Run: raced, DialContextFunc: func(context.Context, string, string) (net.Conn, error) { return srv.Dial() }})
		assert.NoError(t, err)
		assert.Equal(t, len(report.Findings), len(raced))
		for _, f := range report.Findings {
			assert.Equal(t, f.Status, Inconclusive, f.Case.ID, f.Says)
		}
	})
}

func TestManyWhoSendAtOnceAskForOneAuthorization(t *testing.T) {
	t.Parallel()
	asked := 0
	r := &run{target: Target{Method: http.MethodPost, URL: "http://api.test", AuthorizeFunc: func(context.Context) (http.Header, error) {
		asked++
		return http.Header{"Authorization": {brokentest.BearerToken}}, nil
	}}}
	for want := 1; want <= 2; want++ {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				req, err := r.request(t.Context(), r.newCall())
				assert.NoError(t, err)
				assert.Equal(t, req.Header.Get("Authorization"), brokentest.BearerToken)
			})
		}
		all.Wait()
		assert.Equal(t, asked, want)
		r.askAgain()
	}
}

func TestAServerThatFailsHasRefusedNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := brokentest.New(brokentest.None)
		srv := memhttp.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPatch || r.ContentLength == 0 || len(r.Header.Get("Idempotency-Key")) > 100 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			api.ServeHTTP(w, r)
		}))
		target := Target{
			URL:    srv.URL() + brokentest.OrdersPath,
			Header: http.Header{"Authorization": {brokentest.BearerToken}, "Content-Type": {"application/json"}},
			Body:   []byte(`{"amount":2500,"currency":"USD"}`),
		}
		failing := []string{"key/tail", "body/none", "method/other"}
		report, err := Run(t.Context(), target, Config{Run: failing, DialContextFunc: func(context.Context, string, string) (net.Conn, error) { return srv.Dial() }})
		assert.NoError(t, err)
		assert.Equal(t, len(report.Findings), len(failing))
		for _, f := range report.Findings {
			assert.Equal(t, f.Status, Inconclusive, f.Case.ID, f.Says)
		}
	})
}
