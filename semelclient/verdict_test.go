package semelclient_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
)

func TestNothingIsSentOnceItIsSettled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answer  answer
		outcome semelclient.Outcome
	}{
		{status(201, "X-Id", "p1"), semelclient.Applied},
		{status(402, "X-Id", "p1"), semelclient.NotApplied},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := playing(tt.answer)
			client, store := newClient(t, s)
			in := intend(t, client)
			first := client.Do(t.Context(), in)
			for range 2 {
				r := client.Do(t.Context(), in)
				assert.Equal(t, r.Outcome, tt.outcome)
				assert.Equal(t, r.Attempts, 0)
				assert.Equal(t, r.Header.Get("X-Id"), "p1")
				assert.Equal(t, string(r.Body), string(first.Body))
			}
			assert.Equal(t, len(s.requests()), 1)
			assert.NoError(t, client.Forget(t.Context(), in.Key))
			assert.Equal(t, stored(t, store), 0)
			r := client.Do(t.Context(), in)
			assert.Equal(t, r.Outcome, semelclient.Unknown, "one that was forgotten is not sent")
			assert.ErrorIs(t, r.Err, semelclient.ErrIntentMissing)
			assert.Equal(t, len(s.requests()), 1)
		})
	}
}

func TestNotAppliedIsSaidOnceItIsWrittenDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := clientOn(t, &failing{settle: true}, playing(status(402)))
		r := pay(t, client)
		assert.Equal(t, r.Outcome, semelclient.Unknown, "it could be sent again")
		assert.Equal(t, r.Reason, semelclient.ReasonStore)
		assert.ErrorIs(t, r.Err, semelclient.ErrIntentStore)

		client = clientOn(t, &failing{settle: true}, playing(status(201)))
		r = pay(t, client)
		assert.Equal(t, r.Outcome, semelclient.Applied, "another attempt would be a replay")
		assert.ErrorIs(t, r.Err, semelclient.ErrIntentStore)
	})
}

func TestNothingIsSentThatIsNotStored(t *testing.T) {
	t.Parallel()
	s := playing(status(201))
	client := clientOn(t, &failing{add: true}, s)
	_, err := client.Intend(t.Context(), http.MethodPost, target, nil, nil)
	assert.ErrorIs(t, err, semelclient.ErrIntentStore)
	assert.Equal(t, len(s.requests()), 0)
}

// The service took the order and its reply is lost. A call in between whose store
// fails must not take the intent away: nobody would know that one is open, and the
// service's own refusal of the second would be told as "not applied".
func TestACallThatCannotStoreTakesNoOthersIntentAway(t *testing.T) {
	t.Parallel()
	header := http.Header{"Idempotency-Key": {`"order-17"`}}
	for name, fail := range map[string]func(*failing, context.CancelFunc){
		"the disk is full":      func(f *failing, _ context.CancelFunc) { f.add = true },
		"its context has ended": func(_ *failing, end context.CancelFunc) { end() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := playing(lost)
				store := new(failing)
				client := clientOn(t, store, s)
				send := func(ctx context.Context) (*http.Response, error) {
					req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(payment))
					assert.NoError(t, err)
					req.Header = header.Clone()
					return client.RoundTripper().RoundTrip(req)
				}
				_, err := send(t.Context())
				assert.True(t, err != nil, "nobody knows")
				for range 5 {
					ctx, end := context.WithCancel(t.Context())
					fail(store, end)
					_, err := send(ctx)
					assert.True(t, err != nil, "the store cannot be used")
					end()
					_, err = client.Intend(ctx, http.MethodPost, target, header, []byte(payment))
					assert.True(t, err != nil, "nor here")
					store.add = false
				}
				assert.Equal(t, stored(t, store), 1, "intents")
				s.answers = []answer{status(409)}
				resp, err := send(t.Context())
				assert.NoError(t, err)
				assert.NoError(t, resp.Body.Close())
				assert.Equal(t, stored(t, store), 1, "intents, of which none is said not to be applied")
			})
		})
	}
}

func TestAnIntentThatNeverLeftIsNotApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(status(201))
		client, _ := newClient(t, s, func(c *semelclient.Config) {
			c.AuthorizeFunc = func(*http.Request, bool) error { return errLost }
		})
		r := pay(t, client)
		assert.Equal(t, r.Outcome, semelclient.NotApplied)
		assert.Equal(t, r.Reason, semelclient.ReasonGaveUp)
		assert.Equal(t, r.Attempts, 0)
		assert.Equal(t, len(s.requests()), 0)
		assert.ErrorIs(t, r.Err, errLost)
	})
}

func TestARefusedCredentialIsRenewedAndTheKeyIsTheSame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(status(401), status(503, "Retry-After", "1"), status(401), status(201))
		var renewed int
		client, _ := newClient(t, s, func(c *semelclient.Config) {
			c.AuthorizeFunc = func(req *http.Request, renew bool) error {
				if renew {
					renewed++
				}
				req.Header.Set("Authorization", "Bearer "+strconv.Itoa(renewed))
				return nil
			}
		})
		r := pay(t, client)
		assert.Equal(t, r.Outcome, semelclient.Applied)
		assert.Equal(t, renewed, 2)
		same(t, s.requests())
		assert.Equal(t, s.requests()[3].header.Get("Authorization"), "Bearer 2")
		assert.Equal(t, r.Intent.Header.Get("Authorization"), "", "no credential is stored")
	})
	synctest.Test(t, func(t *testing.T) {
		s := playing(status(401))
		client, _ := newClient(t, s, func(c *semelclient.Config) {
			c.AuthorizeFunc = func(*http.Request, bool) error { return nil }
		})
		r := pay(t, client)
		assert.Equal(t, r.Outcome, semelclient.NotApplied, "a renewed one that is refused too")
		assert.Equal(t, r.Attempts, 2)
	})
}

func TestARedirectIsFollowedWithinTheOriginOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(status(307, "Location", "/v2/payments"), status(201))
		client, _ := newClient(t, s)
		r := pay(t, client)
		assert.Equal(t, r.Outcome, semelclient.Applied)
		got := s.requests()
		assert.Equal(t, got[1].path, "/v2/payments")
		assert.Equal(t, got[1].key[0], got[0].key[0])
		assert.Equal(t, got[1].body, payment)
		assert.Equal(t, got[1].at.Sub(got[0].at), time.Duration(0), "at once")
	})
	for _, elsewhere := range []string{"https://evil.test/payments", "http://bank.test/payments", "https://bank.test:444/payments", "//evil.test/", "%zz"} {
		synctest.Test(t, func(t *testing.T) {
			s := playing(status(308, "Location", elsewhere), status(201))
			client, _ := newClient(t, s)
			assert.Equal(t, pay(t, client).Reason, semelclient.ReasonRedirected, elsewhere)
			assert.Equal(t, len(s.requests()), 1, elsewhere)
		})
	}
}

func TestADoNeverSaysMoreThanItKnowsOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(lost)
		client, _ := newClient(t, s)
		in := intend(t, client)
		assert.Equal(t, client.Do(t.Context(), in).Outcome, semelclient.Unknown)
		s.answers = []answer{status(402)}
		r := client.Do(t.Context(), in)
		assert.Equal(t, r.Outcome, semelclient.Unknown, "the lost attempt may have been another's answer")
		assert.Equal(t, r.Reason, semelclient.ReasonRefused)
		s.answers = []answer{status(402, "Idempotent-Replayed", "true")}
		assert.Equal(t, client.Do(t.Context(), in).Outcome, semelclient.NotApplied)
	})
}

func TestTheCopyInHandChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(lost, status(201))
		client, _ := newClient(t, s)
		in := intend(t, client)
		in.Body[0], in.Method, in.URL = 'X', http.MethodPut, "https://evil.test/"
		in.Header.Set("Idempotency-Key", "other")
		assert.Equal(t, client.Do(t.Context(), in).Outcome, semelclient.Applied)
		same(t, s.requests())
		assert.Equal(t, s.requests()[0].body, payment)
		assert.Equal(t, s.requests()[0].key[0], `"`+in.Key+`"`)
		assert.Equal(t, s.requests()[0].host, "bank.test")
	})
}
