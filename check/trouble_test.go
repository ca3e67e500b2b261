package check

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/check/brokentest"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/memhttp"
	"github.com/semel-dev/semel/internal/wellknown"
)

// reportOn runs the check in virtual time against an API that change stands before.
func reportOn(t *testing.T, ctx context.Context, m brokentest.Mistake, cfg Config, change func(api http.Handler, w http.ResponseWriter, r *http.Request), adapt ...func(*Target)) *Report {
	t.Helper()
	api := brokentest.New(m)
	srv := memhttp.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { change(api, w, r) }))
	target := Target{
		URL:    srv.URL() + brokentest.OrdersPath,
		Header: http.Header{"Authorization": {brokentest.BearerToken}, "Content-Type": {"application/json"}},
		Body:   []byte(`{"amount":2500,"currency":"USD"}`),
	}
	for _, f := range adapt {
		f(&target)
	}
	cfg.DialContextFunc = func(context.Context, string, string) (net.Conn, error) { return srv.Dial() }
	report, err := Run(ctx, target, cfg)
	assert.Equal(t, err, ctx.Err())
	time.Sleep(time.Second) // virtual: an order that is at work comes to its end
	return report
}

func found(t *testing.T, r *Report, id string) Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.Case.ID == id {
			return f
		}
	}
	t.Fatalf("there is no finding of %s", id)
	return Finding{}
}

// redirecting answers with a redirection where the API has placed an order.
type redirecting struct {
	http.ResponseWriter

	to       int
	location string // empty: that of the API
	done     bool
}

func (w *redirecting) WriteHeader(status int) {
	if w.done = status == http.StatusCreated; w.done {
		status = w.to
		if w.location != "" {
			w.Header().Set("Location", w.location)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *redirecting) Write(p []byte) (int, error) {
	if w.done {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

func TestARedirectionIsAnAnswerAndNeverFollowed(t *testing.T) {
	t.Parallel()
	through := func(status int, location string) func(http.Handler, http.ResponseWriter, *http.Request) {
		return func(api http.Handler, w http.ResponseWriter, r *http.Request) {
			api.ServeHTTP(&redirecting{ResponseWriter: w, to: status, location: location}, r)
		}
	}
	for _, tt := range []struct {
		name    string
		mistake brokentest.Mistake
		change  func(http.Handler, http.ResponseWriter, *http.Request)
		verdict Verdict
		setup   string
	}{
		{"A sound API that answers with 303 is safe, by Location", brokentest.None, through(303, ""), Safe, ""},
		{"And one that answers with 302", brokentest.None, through(302, ""), Safe, ""},
		{"One that ignores the key and answers with 303 is not", brokentest.IgnoresTheKey, through(303, ""), Unsafe, ""},
		{"307 asks for the request at another address", brokentest.None, through(307, "/there"), Untold, "it got 307 Temporary Redirect to /there. It wants the request at another address"},
		{"One Location for all names no execution", brokentest.None, through(301, "https://api.test/orders"), Untold, `answered with 301 and the one Location "https://api.test/orders"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				report := reportOn(t, t.Context(), tt.mistake, Config{}, tt.change)
				assert.Equal(t, report.Verdict(), tt.verdict, strings.Join(report.Because(), "\n"))
				assert.Contains(t, report.Setup, tt.setup)
				if tt.verdict == Safe {
					assert.Equal(t, report.Marks, []string{"Location"})
					assert.Equal(t, found(t, report, "replay/status").Status, Pass)
					assert.Equal(t, found(t, report, "key/missing").Status, Pass)
				}
			})
		})
	}
	t.Run("A refusal that redirects to another place is none of its answers", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			report := reportOn(t, t.Context(), brokentest.None, Config{Run: []string{"scope/authorization"}}, func(api http.Handler, w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "" {
					http.Redirect(w, r, "/login", http.StatusFound)
					return
				}
				through(303, "")(api, w, r)
			})
			f := found(t, report, "scope/authorization")
			assert.Equal(t, f.Status, Pass, f.Says)
		})
	})
}

func TestTheRulesOfAnOperationAreFoundByMethodAndPattern(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		report := reportOn(t, t.Context(), brokentest.None, Config{Run: []string{"retention"}}, func(api http.Handler, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == wellknown.Path {
				io.WriteString(w, `{"endpoints":[{"methods":["DELETE"],"path":"/orders","retention":1},{"methods":["POST"],"path":"/{rest...}","required":true,"retention":86400}]}`)
				return
			}
			api.ServeHTTP(w, r)
		})
		for _, id := range []string{"retention/declared", "retention/required"} {
			f := found(t, report, id)
			assert.Equal(t, f.Status, Pass, "%s: %s", id, f.Says)
		}
	})
}

// onceOnly lets each key through once, and refuses it for good then.
func onceOnly(status int) func(http.Handler, http.ResponseWriter, *http.Request) {
	used := make(chan map[string]bool, 1)
	used <- make(map[string]bool)
	return func(api http.Handler, w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		known := <-used
		again := known[key]
		known[key] = true
		used <- known
		if again {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(status)
			return
		}
		api.ServeHTTP(w, r)
	}
}

func TestAnAPIThatRefusesEachRepetitionIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, status := range []int{409, 429, 503} {
		synctest.Test(t, func(t *testing.T) {
			report := reportOn(t, t.Context(), brokentest.None, Config{}, onceOnly(status))
			assert.Equal(t, report.Setup, "")
			assert.True(t, report.Took < 40*time.Second, "%d: it takes %v", status, report.Took)
			assert.Equal(t, found(t, report, "replay/answers").Status, Warn, status)
			for _, id := range []string{"replay/executes", "lost/reply"} {
				f := found(t, report, id)
				assert.Equal(t, f.Status, Pass, status, id, f.Says)
			}
		})
	}
}

func TestAnAPIThatCarriesOutNothingIsToldAtOnce(t *testing.T) {
	t.Parallel()
	for status, says := range map[int]string{
		409: "it got 409 Conflict. Nobody has used this key before.",
		429: "it got 429 Too Many Requests. A limit turns requests away",
		503: "it got 503 Service Unavailable. The service fails",
		401: "It wants to know who asks",
		404: "Are address and method right?",
		422: "Is the body a good request",
	} {
		synctest.Test(t, func(t *testing.T) {
			report := reportOn(t, t.Context(), brokentest.None, Config{}, func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "4")
				w.WriteHeader(status)
			})
			assert.Contains(t, report.Setup, says)
			assert.Equal(t, len(report.Findings), 0)
			assert.True(t, report.Took <= longestWait, "%d: it takes %v", status, report.Took)
		})
	}
}

func TestALimitIsWaitedForWithPausesAndNotForLong(t *testing.T) {
	t.Parallel()
	for after, want := range map[string]int{
		"": 11, "0": 11, "-5": 11, "soon": 11, "1.5": 11, "1": 11, "4": 3,
		"11": 1, "9223372036854775807": 1, "99999999999999999999999999": 1,
	} {
		synctest.Test(t, func(t *testing.T) {
			requests := 0
			report := reportOn(t, t.Context(), brokentest.None, Config{}, func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
				if requests++; requests > 100 {
					return // the test ends: 200 is no 429
				}
				w.Header().Set("Retry-After", after)
				w.WriteHeader(http.StatusTooManyRequests)
			})
			assert.Equal(t, requests, want, "requests, where Retry-After is %q", after)
			assert.Contains(t, report.Setup, "it got 429 Too Many Requests")
		})
	}
}

func TestAReportOfARunThatEndedEarlySaysSo(t *testing.T) {
	t.Parallel()
	straight := func(api http.Handler, w http.ResponseWriter, r *http.Request) { api.ServeHTTP(w, r) }
	t.Run("Stopped by its caller, it holds what was found by then", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			report := reportOn(t, ctx, brokentest.None, Config{ProgressFunc: func(n, of int, next Case) {
				assert.Equal(t, of, len(Cases()))
				assert.Equal(t, next.ID, Cases()[n-1].ID)
				if n == 12 {
					stop()
				}
			}}, straight)
			assert.Equal(t, len(report.Findings), 11)
			assert.Equal(t, report.ExitCode(), 3)
			assert.Contains(t, report.Because()[0], "the check is incomplete: it was stopped, with 11 of "+strconv.Itoa(len(Cases()))+" cases done")
			var out struct{ Interrupted bool }
			text, err := json.Marshal(report)
			assert.NoError(t, err)
			assert.NoError(t, json.Unmarshal(text, &out))
			assert.True(t, out.Interrupted, "the JSON says so")
		})
	})
	t.Run("At its own limit, a failure stays one", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			report := reportOn(t, t.Context(), brokentest.IgnoresTheKey, Config{Timeout: 730 * time.Millisecond}, straight)
			assert.Equal(t, report.Verdict(), Unsafe)
			assert.Contains(t, report.Because()[0], "it was not done after 730ms")
		})
	})
	t.Run("Before the first case, it is no fault of the API", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			report := reportOn(t, t.Context(), brokentest.None, Config{Timeout: time.Millisecond}, straight)
			assert.Equal(t, report.Setup, "")
			assert.Contains(t, report.Because()[0], "with 0 of")
		})
	})
}

func TestTheKeysOwnFieldIsNoSecret(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const field = "X-Secret-Token"
		report := reportOn(t, t.Context(), brokentest.IgnoresTheKey, Config{Run: []string{"replay/executes"}}, func(api http.Handler, w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Session") == "" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			r.Header["Idempotency-Key"] = r.Header[field]
			api.ServeHTTP(w, r)
		}, func(target *Target) {
			target.KeyHeader = field
			target.AuthorizeFunc = func(context.Context) (http.Header, error) { return http.Header{"X-Session": {"s3cret"}}, nil }
		})
		f := found(t, report, "replay/executes")
		assert.Equal(t, f.Status, Fail, f.Says)
		assert.True(t, f.History[0].Header.Get(field) != hidden, "the key is shown")
		assert.Equal(t, f.History[0].Header.Get(field), f.History[1].Header.Get(field))
		assert.Equal(t, f.History[0].Header.Get("Authorization"), hidden)
		assert.Equal(t, f.History[0].Header.Get("X-Session"), hidden, "what a command gave to prove who asks")
		var script strings.Builder
		assert.NoError(t, f.WriteScript(&script, field))
		assert.Contains(t, script.String(), `-H 'X-Secret-Token: "'"$KEY1"'"'`)
	})
}

func TestAStalledReplyIsGivenUpByItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		report := reportOn(t, t.Context(), brokentest.None, Config{Run: []string{"lost"}}, func(api http.Handler, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close") // whatever the server does with its end
			api.ServeHTTP(w, r)
		})
		f := found(t, report, "lost/stalled")
		assert.Equal(t, f.Status, Pass, f.Says)
		assert.Equal(t, f.History[0].Err, context.Canceled.Error())
		assert.Equal(t, f.History[0].Note, "a relay held the reply back until the client gave up")
		cut := found(t, report, "lost/reply").History[0]
		assert.Equal(t, cut.Note, "a relay cut the reply after 0 bytes")
		assert.True(t, cut.Err != context.Canceled.Error(), "there it is the connection that ends: %s", cut.Err)
	})
}

func TestAConnectionIsReadFromWhenSomethingWasWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		dial := afterRequest(func(context.Context, string, string) (net.Conn, error) { return near, nil })
		conn, err := dial(t.Context(), "", "")
		assert.NoError(t, err)
		read := make(chan string, 1)
		go func() {
			text := make([]byte, 100)
			n, _ := conn.Read(text)
			read <- string(text[:n])
		}()
		go io.WriteString(far, "220 who is there")
		synctest.Wait()
		assert.Equal(t, len(read), 0, "what was read before anything was written")
		go io.Copy(io.Discard, far)
		conn.Write([]byte("GET"))
		assert.Equal(t, <-read, "220 who is there")
		conn.Close()
		far.Close()
	})
}

// TestWhatAnswersEachPathWithAnExecutionIsNotSafe: an API that carries out an
// operation for each GET too, wherever it is sent.
func TestWhatAnswersEachPathWithAnExecutionIsNotSafe(t *testing.T) {
	t.Parallel()
	paysFor := func(path string) func(http.Handler, http.ResponseWriter, *http.Request) {
		return func(api http.Handler, w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.Path != path {
				api.ServeHTTP(w, r)
				return
			}
			order := httptest.NewRequest(http.MethodPost, brokentest.OrdersPath, strings.NewReader(`{"amount":1,"currency":"USD"}`))
			order.Header.Set("Idempotency-Key", `"`+newKey()+`"`)
			order.Header.Set("Authorization", brokentest.BearerToken)
			api.ServeHTTP(w, order)
		}
	}
	counted := func(target *Target) {
		target.Observe = &Observe{URL: strings.Replace(target.URL, brokentest.OrdersPath, brokentest.EffectsPath, 1), Pointer: "/orders"}
	}
	for _, path := range []string{brokentest.OrdersPath, wellknown.Path} {
		for evidence, adapt := range map[Evidence]func(*Target){Identity: func(*Target) {}, Counted: counted} {
			t.Run(path+" "+string(evidence), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					report := reportOn(t, t.Context(), brokentest.None, Config{}, paysFor(path), adapt)
					assert.Equal(t, report.Verdict(), Unsafe)
					f := found(t, report, "method/get-executes")
					assert.Equal(t, f.Status, Fail, f.Says)
					assert.Equal(t, f.Evidence, evidence)
					assert.Contains(t, f.Says, "3 executions of 3 GETs of http")
					assert.Contains(t, f.Says, path+": 3 × 201")
					if path == wellknown.Path {
						document := found(t, report, "retention/document")
						assert.Equal(t, document.Status, Warn)
						assert.Contains(t, document.Says, "got no rules, but a reply as the operation gives it: 201 Created")
						return
					}
					assert.Equal(t, found(t, report, "method/get").Says, "a GET is carried out as an operation: 201 with a key, 201 without")
				})
			})
		}
	}
	t.Run("A page that has a number of its own is no execution", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			report := reportOn(t, t.Context(), brokentest.None, Config{Run: []string{"method"}}, func(api http.Handler, w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet {
					api.ServeHTTP(w, r)
					return
				}
				io.WriteString(w, `{"id":"`+newKey()+`","orders":[]}`)
			})
			assert.Equal(t, found(t, report, "method/get-executes").Status, Inconclusive)
			assert.Equal(t, found(t, report, "method/get").Status, Pass)
		})
	})
}

// TestACountOfExecutionsSaysOfHowManyRequests: those that come after a race too.
func TestACountOfExecutionsSaysOfHowManyRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		straight := func(api http.Handler, w http.ResponseWriter, r *http.Request) { api.ServeHTTP(w, r) }
		report := reportOn(t, t.Context(), brokentest.IgnoresTheKey, Config{}, straight)
		for id, says := range map[string]string{
			"replay/executes":       "2 executions of 2 requests",
			"replay/others-between": "2 executions of 2 requests",
			"mismatch/executes":     "3 executions of 3 requests",
			"concurrency/64":        "65 executions of 65 requests (64 at once, 1 afterwards)",
			"mismatch/at-once":      "5 executions of 5 requests (2 at once, 3 afterwards)",
		} {
			assert.Equal(t, found(t, report, id).Says, says, id)
		}
	})
}

// TestALeftClientsRequestIsNotSaidToBeTheOneExecuted: its server may have dropped
// it, and carried out the next one.
func TestALeftClientsRequestIsNotSaidToBeTheOneExecuted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := make(map[string]bool)
		report := reportOn(t, t.Context(), brokentest.None, Config{Run: []string{"lost/client-gone"}}, func(api http.Handler, w http.ResponseWriter, r *http.Request) {
			if key := r.Header.Get("Idempotency-Key"); r.Method == http.MethodPost && len(left) > controls && !left[key] {
				left[key] = true
				io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
				return
			} else if r.Method == http.MethodPost {
				left[key] = true
			}
			api.ServeHTTP(w, r)
		}, func(target *Target) {
			target.Observe = &Observe{URL: strings.Replace(target.URL, brokentest.OrdersPath, brokentest.EffectsPath, 1), Pointer: "/orders"}
		})
		f := found(t, report, "lost/client-gone")
		assert.Equal(t, f.Status, Pass, f.Says)
		assert.Equal(t, f.Says, "one execution in all, though the first client had left")
		assert.Equal(t, report.Verdict(), NoVerdict)
	})
}

func TestAHistoryCountsWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	x := Exchange{Method: "POST", URL: "http://api.test", Body: []byte(strings.Repeat("b", 100)), Status: 201}
	other := x
	other.Status = 409
	f := Finding{History: []Exchange{x, x, x, x, x, other}}
	var b strings.Builder
	assert.NoError(t, f.WriteHistory(&b))
	for _, want := range []string{"\n   2. ", "… 2 more of the same kind", "\n   5. ", "\n   6. ", strings.Repeat("b", 80) + "… (20 characters more)\n"} {
		assert.Contains(t, b.String(), want)
	}
}

func TestASeedSaysWhereAReplyIsCutAndALimitHowFast(t *testing.T) {
	t.Parallel()
	straight := func(api http.Handler, w http.ResponseWriter, r *http.Request) { api.ServeHTTP(w, r) }
	t.Run("One seed cuts at one place, many at several", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			cut := func(seed uint64) string {
				report := reportOn(t, t.Context(), brokentest.None, Config{Run: []string{"lost/reply-cut"}, Seed: seed}, straight)
				assert.Equal(t, report.Seed, seed)
				return found(t, report, "lost/reply-cut").History[0].Note
			}
			places := make(map[string]bool)
			for seed := range uint64(8) {
				places[cut(seed)] = true
			}
			assert.True(t, len(places) > 3, "eight seeds cut at %d places", len(places))
			assert.Equal(t, cut(3), cut(3))
		})
	})
	t.Run("Two requests in a second are no more", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			report := reportOn(t, t.Context(), brokentest.None, Config{Run: []string{"replay/ten"}, RequestsPerSecond: 2}, straight)
			const requests = controls + 1 + 10
			assert.True(t, report.Took >= (requests-1)*time.Second/2, "%d requests in %v", requests, report.Took)
		})
	})
}
