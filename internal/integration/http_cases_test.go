package integration

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// blocking is the usual handler whose first run says when it is inside, and
// goes on when goOn is closed. Another run, which is a fault, does not wait.
func blocking(t testing.TB, s *shop) (h http.HandlerFunc, inside, goOn chan struct{}) {
	t.Helper()
	inside, goOn = make(chan struct{}, 1), make(chan struct{})
	var entered atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) {
		if entered.CompareAndSwap(false, true) {
			inside <- struct{}{}
			<-goOn
		}
		s.created(t)(w, r)
	}, inside, goOn
}

func claimCases(all *httpCases) {
	all.add("claim-not-released: After a panic the retry runs at once", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{})
		var died bool
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
			if !died {
				died = true
				panic("out of paper") //nolint:forbidigo // that is the case.
			}
			s.created(t)(w, r)
		}))
		_, err := try(t.Context(), srv, ask{})
		assert.True(t, err != nil, "the first client sees a broken connection")
		assert.Equal(t, send(t, srv, ask{}).told(), "201 executed")
		s.sold(t, 1)
	})

	all.add("live-claim-stolen: A claim without a deadline holds for its lease", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{})
		h, inside, goOn := blocking(t, s)
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, h))
		first := sending(t, srv, ask{})
		<-inside
		s.advance(t, semel.DefaultLease-5*time.Second)
		again := send(t, srv, ask{})
		assert.Equal(t, again.told(), "409 in-progress")
		close(goOn)
		assert.Equal(t, (<-first).told(), "201 executed")
		s.sold(t, 1)
	})

	all.add("waiter: A duplicate does not wait, it is told to come again and then gets the first one's reply", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{})
		h, inside, goOn := blocking(t, s)
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, h))
		first := sending(t, srv, ask{})
		<-inside
		early := send(t, srv, ask{})
		assert.Equal(t, early.told(), "409 in-progress")
		assert.Contains(t, early.text, `"code":"in-progress","retry":true`)
		assert.True(t, early.Header.Get("Retry-After") != "", "it says when to come again")
		close(goOn)
		done := <-first
		late := send(t, srv, ask{})
		assert.Equal(t, late.told(), "201 replayed")
		assert.Equal(t, late.text, done.text)
		s.sold(t, 1)
	})

	all.add("concurrent-claim: Of 64 clients of two servers on one file, one runs", concurrentClaim)

	all.add("conflict-status: Who loses the race for the insert is told of the winner, and others are served", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{})
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, s.created(t)))
		for i := range 10 {
			o := ask{}.keyed("K" + strconv.Itoa(i))
			resume := s.stall(t)
			one, two := sending(t, srv, o), sending(t, srv, o)
			resume()
			got := map[string]int{(<-one).told(): 1}
			got[(<-two).told()]++
			assert.Equal(t, got["201 executed"], 1, "winners, of %v", got)
			assert.Equal(t, got["409 in-progress"]+got["201 replayed"], 1, "losers, of %v", got)
			assert.Equal(t, send(t, srv, o.keyed("other"+strconv.Itoa(i))).told(), "201 executed")
		}
		s.sold(t, 20)
	})

	all.add("mismatch-check-bypass: Another request under the key is refused on every way to the record", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{})
		h, inside, goOn := blocking(t, s)
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, h))
		first := sending(t, srv, ask{body: `{"amount":1}`})
		<-inside
		other, running := ask{body: `{"amount":2}`}, reused
		if on.mode == semel.Atomic { // nobody sees yet what it is for
			running = "409 in-progress"
		}
		assert.Equal(t, send(t, srv, other).told(), running, "while the first runs")
		close(goOn)
		<-first
		after := send(t, srv, other)
		assert.Equal(t, after.told(), reused, "after its end")
		assert.Equal(t, after.Header.Get("Location"), "")

		resume := s.stall(t)
		one, two := sending(t, srv, ask{body: `{"amount":1}`}.keyed("K2")), sending(t, srv, other.keyed("K2"))
		resume()
		got := map[string]int{(<-one).told(): 1}
		got[(<-two).told()]++
		assert.Equal(t, got[executed], 1, "when both insert, of %v", got)
		assert.True(t, got[reused] == 1 || on.mode == semel.Atomic && got[running] == 1, "when both insert: %v", got)
		s.sold(t, 2)
	})

	for _, proto := range []string{overHTTP1, overHTTP2} {
		all.add("client-disconnect: What a client began that went away is saved, over "+proto, func(t *testing.T, on shopWay) {
			s := newShop(t, on, shopSettings{})
			goOn, inside, ended := make(chan struct{}), make(chan context.Context, 1), make(chan struct{}, 2)
			inner := s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
				s.created(t)(w, r)
				<-goOn
				assert.NoError(t, r.Context().Err())
			})
			srv := serve(t, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() { ended <- struct{}{} }()
				select {
				case inside <- r.Context():
				default:
				}
				inner.ServeHTTP(w, r)
			}))
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() {
				_, err := try(ctx, srv, ask{body: `{"qty":1}`})
				gone <- err
			}()
			connection := <-inside
			assert.Eventually(t, "the handler runs", func() bool { return s.runs.Load() == 1 })
			leave()
			assert.ErrorIs(t, <-gone, context.Canceled)
			<-connection.Done()
			close(goOn)
			<-ended
			again := send(t, srv, ask{body: `{"qty":1}`})
			assert.Equal(t, again.told(), "201 replayed")
			assert.Equal(t, again.text, "{\"id\":1}\n")
			s.sold(t, 1)
		})
	}
}

func concurrentClaim(t *testing.T, on shopWay) {
	const clients, keys = 64, 20
	s := newShop(t, on, shopSettings{})
	twin := newShopOn(t, s.again(t, nil), on, shopSettings{})

	var waiting sync.Map // key → channel that is closed at the first loser
	until := func(shop *shop) http.Handler {
		return shop.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
			seen, _ := waiting.Load(r.Header.Get("Idempotency-Key"))
			<-seen.(chan struct{}) //nolint:forcetypeassert // the map holds nothing else.
			shop.created(t)(w, r)
		})
	}
	one, two := serve(t, overHTTP1, until(s)), serve(t, overHTTP1, until(twin))
	for i := range keys {
		o := ask{}.keyed("K" + strconv.Itoa(i))
		seen, barrier := make(chan struct{}), make(chan struct{})
		waiting.Store("K"+strconv.Itoa(i), seen)
		var first sync.Once
		answers := make(chan string, clients)
		for n := range clients {
			srv := one
			if n%2 == 1 {
				srv = two
			}
			go func() {
				<-barrier
				got := send(t, srv, o).told()
				if got != "201 executed" {
					first.Do(func() { close(seen) })
				}
				answers <- got
			}()
		}
		close(barrier)
		got := map[string]int{}
		for range clients {
			got[<-answers]++
		}
		assert.Equal(t, got["201 executed"], 1, "key %d: %v", i, got)
		assert.Equal(t, got["409 in-progress"]+got["201 replayed"], clients-1, "key %d: %v", i, got)
	}
	assert.Equal(t, s.runs.Load()+twin.runs.Load(), int64(keys), "runs")
	want := map[string]int{}
	for i := range keys {
		want["K"+strconv.Itoa(i)] = 1
	}
	assert.Equal(t, s.rows(t), want, "rows of each key")
}

func timeCases(all *httpCases) {
	all.add("expiry-read: A record answers until it expires, and then neither answers nor blocks", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{guard: semel.Config{Retention: time.Minute, HandlerDeadline: 30 * time.Second}})
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, s.created(t)))
		for _, key := range []string{"K1", "K2"} {
			assert.Equal(t, send(t, srv, ask{body: `{"qty":1}`}.keyed(key)).told(), "201 executed")
		}
		s.advance(t, 50*time.Second)
		assert.Equal(t, send(t, srv, ask{body: `{"qty":1}`}).told(), "201 replayed")
		s.advance(t, 11*time.Second)
		other := ask{body: `{"qty":2}`}
		assert.Equal(t, send(t, srv, other).told(), "201 executed")
		s.sold(t, 3)
		answers := make(chan string, 20)
		for range cap(answers) {
			go func() { answers <- send(t, srv, other.keyed("K2")).told() }()
		}
		got := map[string]int{}
		for range cap(answers) {
			got[<-answers]++
		}
		assert.Equal(t, got["201 executed"], 1, "of %v", got)
		assert.Equal(t, got["409 in-progress"]+got["201 replayed"], cap(answers)-1, "of %v", got)
		s.sold(t, 4)
	})

	all.add("expiry-policy: After retention a retry is a new run, and not before", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{guard: semel.Config{Retention: 24 * time.Hour}})
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, s.created(t)))
		assert.Equal(t, send(t, srv, ask{}).told(), "201 executed")
		s.advance(t, s.guard.Rules().Retention-time.Minute)
		assert.Equal(t, send(t, srv, ask{}).told(), "201 replayed")
		s.advance(t, time.Hour)
		assert.Equal(t, send(t, srv, ask{}).told(), "201 executed")
		s.sold(t, 2)
	})

	for _, skew := range []time.Duration{30 * time.Second, -30 * time.Second} {
		all.add("clock: The wait lies within the lease however far the clocks are apart, "+skew.String(), func(t *testing.T, on shopWay) {
			const lease = 10 * time.Second
			s := newShop(t, on, shopSettings{guard: semel.Config{Lease: lease}})
			s.advance(t, skew)
			h, inside, goOn := blocking(t, s)
			srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, h))
			first := sending(t, srv, ask{})
			<-inside
			again := send(t, srv, ask{})
			assert.Equal(t, again.told(), "409 in-progress")
			wait, err := strconv.Atoi(again.Header.Get("Retry-After"))
			assert.NoError(t, err)
			assert.True(t, wait > 0 && wait <= int(lease/time.Second), "Retry-After is %d", wait)
			close(goOn)
			assert.Equal(t, (<-first).told(), "201 executed")
			s.sold(t, 1)
		})
	}
}

// repeats are requests of which the second comes under the key of the first.
var repeats = []struct {
	claim         string
	first, second ask
	want          string
}{
	{"json-order: Members in another order, with other white space, are the same request", ask{body: `{"a":1,"b":{"x":1,"y":2}}`}, ask{body: `{ "b":{"y":2, "x":1},"a":1}`}, replayed},
	{"json-order: Items in another order are another request", ask{body: `[1,2]`}, ask{body: `[2,1]`}, reused},
	{"json-numbers: 1 and 1.0 are two numbers", ask{body: `{"n":1}`}, ask{body: `{"n":1.0}`}, reused},
	{"json-numbers: 1 and 1e0 are two numbers", ask{body: `{"n":1}`}, ask{body: `{"n":1e0}`}, reused},
	{"json-numbers: A number is no string", ask{body: `{"n":1}`}, ask{body: `{"n":"1"}`}, reused},
	{"json-numbers: 0 and -0 are two numbers", ask{body: `{"n":-0}`}, ask{body: `{"n":0}`}, reused},
	{"json-strings: A letter and its escape are one text", ask{body: `{"name":"caf\u00e9"}`}, ask{body: `{"name":"café"}`}, replayed},
	{"json-strings: A slash and its escape are one text", ask{body: `{"p":"a\/b"}`}, ask{body: `{"p":"a/b"}`}, replayed},
	{"fingerprint-omits: Another query is another request", ask{target: "/?to=p1"}, ask{target: "/?to=p2"}, reused},
	{"fingerprint-omits: The query counts as it was sent", ask{target: "/?a=1&b=2"}, ask{target: "/?b=2&a=1"}, reused},
	{"fingerprint-omits: Repeated names keep their order", ask{target: "/?a=1&a=2"}, ask{target: "/?a=2&a=1"}, reused},
	{"fingerprint-omits: The same query is the same request", ask{target: "/?a=1&b=2"}, ask{target: "/?a=1&b=2"}, replayed},
	{"operation-binding: Another route is another request", ask{target: "/orders"}, ask{target: "/refunds"}, reused},
	{"operation-binding: Another route behind the same path is another request", ask{target: "/orders"}, ask{target: "/orders"}.with("Host", "refunds.test"), reused},
	{"operation-binding: Another method is another request", ask{target: "/orders"}, ask{method: http.MethodPatch, target: "/orders"}, reused},
	{"path-form: A slash more is another request", ask{target: "/orders"}, ask{target: "/orders/"}, reused},
	{"path-form: A redirect of the router is passed on", ask{target: "/orders"}, ask{target: "//orders"}, "307 "},
	{"path-form: A redirect of the router is not the reply of the key", ask{target: "//orders"}, ask{target: "/orders"}, executed},
	{"false-mismatch: Another boundary is the same upload", upload("aaa", "hi"), upload("bbb", "hi"), replayed},
	{"false-mismatch: Another file is another upload", upload("aaa", "hi"), upload("ccc", "ho"), reused},
	{"key-encoding: With and without quotes it is one key", ask{}.keyed(`"abc"`), ask{}.keyed("abc"), replayed},
	{"key-encoding: Parameters are no part of the key", ask{}.keyed("abc"), ask{}.keyed(`"abc";p=1`), replayed},
	{"key-encoding: An escape stands for one character", ask{}.keyed(`"a\"b"`), ask{}.keyed(`"a\"b"`), replayed},
	{"key-encoding: A quote that is not closed is refused", ask{}.keyed(`"ab`), ask{}.keyed("ab"), executed},
	{"tenant-scope: Two sessions with one key are two callers", ask{}.with("Cookie", "session=p1"), ask{}.with("Cookie", "session=p2"), executed},
	{"tenant-scope: Two credentials with one key are two callers", ask{}.with("Authorization", "p1"), ask{}.with("Authorization", "p2"), executed},
	{"tenant-scope: A session is no credential of the same name", ask{}.with("Authorization", "p1"), ask{}.with("Cookie", "session=p1"), executed},
	{"tenant-scope: Who cannot be told from others is refused", ask{}, ask{}.with("Authorization", "nobody"), "403 released"},
}

const (
	executed = "201 executed"
	replayed = "201 replayed"
	reused   = "422 key-reused"
)

func upload(boundary, file string) ask {
	body := "--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"hello.txt\"\r\n\r\n" + file +
		"\r\n--X\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n1\r\n--X--\r\n"
	return ask{body: strings.ReplaceAll(body, "--X", "--"+boundary)}.with("Content-Type", "multipart/form-data; boundary="+boundary)
}

// caseHeader names the case that a request belongs to, where several have one
// shop: each has its own callers.
const caseHeader = "X-Case"

func requestCases(all *httpCases) {
	kinds := map[string][]int{}
	for i, c := range repeats {
		kind, _, _ := strings.Cut(c.claim, ":")
		kinds[kind] = append(kinds[kind], i)
	}
	for kind, of := range kinds {
		all.add(kind+": A repeat is told from another request", func(t *testing.T, on shopWay) {
			toldApart(t, on, of)
		})
	}
}

func toldApart(t *testing.T, on shopWay, of []int) {
	t.Helper()
	s := newShop(t, on, shopSettings{caller: func(r *http.Request) (string, error) {
		caller, err := shopCaller(r)
		return r.Header.Get(caseHeader) + " " + caller, err
	}})
	mux := http.NewServeMux()
	mux.Handle("/", s.protect(t, semelhttp.Route{}, s.created(t)))
	refunds := s.protect(t, semelhttp.Route{Name: "refunds"}, s.created(t))
	mux.Handle("/refunds", refunds)
	mux.Handle("refunds.test/", refunds)
	srv := serve(t, overHTTP1, mux)
	runs := 0
	for _, i := range of {
		c := repeats[i]
		one := send(t, srv, c.first.with(caseHeader, strconv.Itoa(i)))
		two := send(t, srv, c.second.with(caseHeader, strconv.Itoa(i)))
		assert.Equal(t, two.told(), c.want, c.claim)
		assert.Equal(t, one.text == two.text, c.want == replayed, "the same text: %s", c.claim)
		assert.True(t, one.told() == executed || two.told() == executed, "something ran: %s", c.claim)
		for _, a := range []answer{one, two} {
			if a.told() == executed {
				runs++
			}
		}
	}
	s.sold(t, runs)
}

func keyCases(all *httpCases) {
	for _, optional := range []bool{false, true} {
		all.add("key-syntax: A key is read or refused, and only an absent one is none, optional "+strconv.FormatBool(optional), func(t *testing.T, on shopWay) {
			s := newShop(t, on, shopSettings{})
			h := func(w http.ResponseWriter, r *http.Request) {
				if _, keyed := semel.OperationFrom(r.Context()); !keyed {
					io.WriteString(w, "unprotected")
					return
				}
				s.created(t)(w, r)
			}
			srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{KeyOptional: optional}, h))
			long := strings.Repeat("k", semel.MaxKeyLength)
			for _, key := range []string{"", "   ", `""`, long + "k", strings.Repeat("k", 10_000)} {
				for range 2 {
					got := send(t, srv, ask{}.keyed(key))
					assert.Equal(t, got.told(), "400 released", "%.10q", key)
					assert.Contains(t, got.text, `"code":"key-invalid"`)
				}
			}
			s.sold(t, 0)
			for _, key := range []string{"k", long} {
				assert.Equal(t, send(t, srv, ask{}.keyed(key)).told(), executed)
				assert.Equal(t, send(t, srv, ask{}.keyed(key)).told(), replayed)
			}
			absent := send(t, srv, ask{}.with("Idempotency-Key"))
			if optional {
				assert.Equal(t, absent.text, "unprotected")
			} else {
				assert.Contains(t, absent.text, `"code":"key-missing"`)
			}
			s.sold(t, 2)
		})
	}

	for _, name := range []string{"Idempotency-Key", "X-My-Key"} {
		all.add("header-name: It has no case, over any protocol, "+name, func(t *testing.T, on shopWay) {
			s := newShop(t, on, shopSettings{mw: semelhttp.Config{KeyHeader: name}})
			h := s.protect(t, semelhttp.Route{}, s.created(t))
			one, two := serve(t, overHTTP1, h), serve(t, overHTTP2, h)
			bare := ask{}.with("Idempotency-Key")
			assert.Equal(t, send(t, one, bare.with(strings.ToUpper(name), "K1")).told(), executed)
			assert.Equal(t, send(t, one, bare.with(strings.ToLower(name), "K1")).told(), replayed)
			got := send(t, two, bare.with(name, "K1"))
			assert.Equal(t, got.told(), replayed)
			assert.Equal(t, got.Proto, overHTTP2)
			s.sold(t, 1)
		})
	}
}

func callerCases(all *httpCases) {
	all.add("auth-order: A right that was withdrawn is asked for before a replay, and its refusal is not saved", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{})
		var lost atomic.Bool
		inner := s.protect(t, semelhttp.Route{BeforeReplay: func(*http.Request, semel.Record) error {
			if lost.Load() {
				return errors.New("the role was lost")
			}
			return nil
		}}, s.created(t))
		var refused atomic.Int64
		srv := serve(t, overHTTP1, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if status := int(refused.Load()); status != 0 {
				http.Error(w, "not you", status)
				return
			}
			inner.ServeHTTP(w, r)
		}))
		first := send(t, srv, ask{})
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
			refused.Store(int64(status))
			got := send(t, srv, ask{})
			assert.Equal(t, got.StatusCode, status)
			assert.Equal(t, got.text, "not you\n")
		}
		refused.Store(0)
		lost.Store(true)
		got := send(t, srv, ask{})
		assert.Equal(t, got.StatusCode, http.StatusForbidden, "of BeforeReplay")
		assert.True(t, !strings.Contains(got.text, `"id"`), "nothing of the reply is shown")
		lost.Store(false)
		again := send(t, srv, ask{})
		assert.Equal(t, again.told(), replayed)
		assert.Equal(t, again.text, first.text)
		s.sold(t, 1)
	})
}
