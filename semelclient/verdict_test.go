package semelclient_test

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
)

// The table of docs/client.md: what each answer means as the first of an intent,
// and what it means after an attempt that was lost.
func TestAnAnswerSaysWhatItSays(t *testing.T) {
	t.Parallel()
	const (
		applied    = semelclient.Applied
		notApplied = semelclient.NotApplied
		unknown    = semelclient.Unknown
		replayed   = "Idempotent-Replayed"
	)
	for _, tt := range []struct {
		name   string
		answer answer
		// first is the outcome if it is the first answer, after that if an
		// attempt was lost before it; tries is how many requests the former takes,
		// when the service answers the same for ever, and 0 many.
		first, after semelclient.Outcome
		tries        int
		reason       semelclient.Reason
	}{
		{"200", status(200), applied, applied, 1, semelclient.ReasonReply},
		{"201 that is a replay", status(201, replayed, "true"), applied, applied, 1, semelclient.ReasonReply},
		{"202 without a body", status(202, "body", ""), applied, applied, 1, semelclient.ReasonReply},
		{"303", status(303, "Location", "/orders/1"), applied, applied, 1, semelclient.ReasonReply},
		{"302, which may be a login page", status(302, "Location", "/login"), unknown, unknown, 1, semelclient.ReasonRedirected},
		{"302 that is kept", status(302, "Semel-Outcome", "executed"), applied, applied, 1, semelclient.ReasonReply},
		{"307 to another host", status(307, "Location", "https://evil.test/payments"), notApplied, unknown, 1, semelclient.ReasonRedirected},
		{"308 without a place", status(308), notApplied, unknown, 1, semelclient.ReasonRedirected},
		{"307 in a circle", status(307, "Location", "/payments"), notApplied, unknown, 4, semelclient.ReasonRedirected},
		{"400 that says nothing of keys", status(400), notApplied, unknown, 1, semelclient.ReasonRefused},
		{"402 that says nothing of keys", status(402), notApplied, unknown, 1, semelclient.ReasonRefused},
		{"402 that is kept", status(402, "Semel-Outcome", "executed"), notApplied, notApplied, 1, semelclient.ReasonReply},
		{"402 that is a replay", status(402, replayed, "true"), notApplied, notApplied, 1, semelclient.ReasonReply},
		{"401 without Authorize", status(401), notApplied, unknown, 1, semelclient.ReasonRefused},
		{"403", status(403), notApplied, unknown, 1, semelclient.ReasonRefused},
		{"403 other-caller", problem(403, "key-reused", "other-caller", false), notApplied, unknown, 1, semelclient.ReasonOtherCaller},
		{"403 replay-refused", problem(403, "reply-not-kept", "replay-refused", false), unknown, unknown, 1, semelclient.ReasonReplyHidden},
		{"409 of the service's own", status(409), notApplied, unknown, 1, semelclient.ReasonRefused},
		{"409 in-progress", problem(409, "in-progress", "in-progress", true, "Retry-After", "1"), unknown, unknown, 0, semelclient.ReasonGaveUp},
		{"409 that says to come back", status(409, "Retry-After", "1"), unknown, unknown, 0, semelclient.ReasonGaveUp},
		{"409 as Stripe says it", status(409, "Stripe-Should-Retry", "true"), unknown, unknown, 0, semelclient.ReasonGaveUp},
		{"422 as Adyen says it", status(422, "transient-error", "true"), unknown, unknown, 0, semelclient.ReasonGaveUp},
		{"409 outcome-unknown", problem(409, "unknown", "outcome-unknown", true, "Retry-After", "300"), unknown, unknown, 1, semelclient.ReasonGaveUp},
		{"409 reply-not-kept of a 201", originally(201), applied, applied, 1, semelclient.ReasonReply},
		{"409 reply-not-kept of a 402", originally(402), notApplied, notApplied, 1, semelclient.ReasonReply},
		{"409 reply-not-kept of who knows", problem(409, "reply-not-kept", "reply-not-kept", false), unknown, unknown, 1, semelclient.ReasonReplyHidden},
		{"406 reply-not-acceptable", problem(406, "reply-not-kept", "reply-not-acceptable", true), unknown, unknown, 1, semelclient.ReasonReplyHidden},
		{"422 key-reused", problem(422, "key-reused", "key-reused", false), notApplied, unknown, 1, semelclient.ReasonKeyReused},
		{"422 of the service's own", status(422), notApplied, unknown, 1, semelclient.ReasonRefused},
		{"413 body-too-large", problem(413, "released", "body-too-large", false), notApplied, unknown, 1, semelclient.ReasonRefused},
		{"400 body-incomplete", problem(400, "released", "body-incomplete", true), notApplied, unknown, 0, semelclient.ReasonGaveUp},
		{"408", status(408), notApplied, unknown, 0, semelclient.ReasonGaveUp},
		{"429", status(429), notApplied, unknown, 0, semelclient.ReasonGaveUp},
		{"429 that is never to be sent again", status(429, "Stripe-Should-Retry", "false"), notApplied, unknown, 1, semelclient.ReasonRefused},
		{"500", status(500), unknown, unknown, 0, semelclient.ReasonGaveUp},
		{"500 that is kept", status(500, "Semel-Outcome", "executed"), unknown, unknown, 1, semelclient.ReasonFinalError},
		{"500 that is a replay", status(500, replayed, "true"), unknown, unknown, 1, semelclient.ReasonFinalError},
		{"500 that is never to be sent again", status(500, "Stripe-Should-Retry", "false"), unknown, unknown, 1, semelclient.ReasonRefused},
		{"500 of a handler that undid it", status(500, "Semel-Outcome", "released"), notApplied, unknown, 0, semelclient.ReasonGaveUp},
		{"501", status(501), unknown, unknown, 1, semelclient.ReasonRefused},
		{"502 upstream-unknown", problem(502, "unknown", "upstream-unknown", true), unknown, unknown, 0, semelclient.ReasonGaveUp},
		{"503", status(503), unknown, unknown, 0, semelclient.ReasonGaveUp},
		{"503 store-unavailable, nothing ran", problem(503, "released", "store-unavailable", true, "Retry-After", "5"), notApplied, unknown, 0, semelclient.ReasonGaveUp},
		{"504", status(504), unknown, unknown, 0, semelclient.ReasonGaveUp},
		{"200 without protection", status(200, "Semel-Outcome", "unprotected"), applied, applied, 1, semelclient.ReasonReply},
		{"402 without protection", status(402, "Semel-Outcome", "unprotected"), notApplied, unknown, 1, semelclient.ReasonRefused},
		{"500 without protection", status(500, "Semel-Outcome", "unprotected"), unknown, unknown, 1, semelclient.ReasonUnprotected},
		{"a lost reply", lost, unknown, unknown, 0, semelclient.ReasonGaveUp},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := playing(tt.answer)
				client, store := newClient(t, s)
				r := pay(t, client)
				assert.Equal(t, r.Outcome, tt.first)
				assert.Equal(t, r.Reason, tt.reason)
				assert.Equal(t, r.Attempts, len(s.requests()), "attempts")
				if tt.tries > 0 {
					assert.Equal(t, r.Attempts, tt.tries, "requests")
				} else {
					assert.True(t, r.Attempts > 3, "it is tried again: %d", r.Attempts)
					assert.ErrorIs(t, r.Err, semelclient.ErrGaveUp)
				}
				same(t, s.requests())
				assert.Equal(t, stored(t, store), 1, "it stays until it is forgotten")

				s = playing(lost, tt.answer)
				client, _ = newClient(t, s)
				r = pay(t, client)
				assert.Equal(t, r.Outcome, tt.after, "after a lost attempt")
				same(t, s.requests())
			})
		})
	}
}

// originally answers that the reply is not kept, and what its status was.
func originally(code int) answer {
	return status(http.StatusConflict, "Content-Type", "application/problem+json", "Semel-Outcome", "reply-not-kept",
		"body", `{"code":"reply-not-kept","retry":false,"originalStatus":`+strconv.Itoa(code)+`}`)
}

func TestARefusalAfterALostAttemptIsLookedAtTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(lost, status(402), status(402, "Idempotent-Replayed", "true"))
		client, _ := newClient(t, s)
		r := pay(t, client)
		assert.Equal(t, r.Outcome, semelclient.NotApplied, "the second look shows whose it is")
		assert.Equal(t, r.Attempts, 3)
		assert.True(t, r.Replayed)
	})
}

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

func TestAnIntentThatNeverLeftIsNotApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(status(201))
		client, _ := newClient(t, s, func(c *semelclient.Config) {
			c.Authorize = func(*http.Request, bool) error { return errLost }
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
			c.Authorize = func(req *http.Request, renew bool) error {
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
			c.Authorize = func(*http.Request, bool) error { return nil }
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
