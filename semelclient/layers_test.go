package semelclient_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
)

func TestOfTwoClientsOneRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(status(503))
		inner, below := newClient(t, s)
		outer, _ := newClient(t, inner.RoundTripper(), func(c *semelclient.Config) { c.Policy.MaxAttempts = 3 })
		r := pay(t, outer)
		assert.Equal(t, len(s.requests()), 3, "the outer one's attempts, and no more")
		assert.Equal(t, r.Status, 503)
		same(t, s.requests())
		assert.Equal(t, stored(t, below), 0, "the inner one has no intent of it")
	})
	for _, key := range []string{"", "its own"} {
		t.Run("another request in the same context is none of its attempts, key "+key, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				other := playing(status(503), status(201))
				tokens, _ := newClient(t, other)
				client, _ := newClient(t, playing(status(201)), func(c *semelclient.Config) {
					c.AuthorizeFunc = func(req *http.Request, _ bool) error { return fetchToken(req, tokens.RoundTripper(), key) }
				})
				assert.Equal(t, pay(t, client).Outcome, semelclient.Applied)
				assert.Equal(t, len(other.requests()), 2, "it is sent again")
				same(t, other.requests())
			})
		})
	}
}

// fetchToken sends a request of its own in the context of an attempt.
func fetchToken(attempt *http.Request, through http.RoundTripper, key string) error {
	req, err := http.NewRequestWithContext(attempt.Context(), http.MethodPost, "https://login.test/token", nil)
	if err != nil {
		return err
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	resp, err := through.RoundTrip(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func TestGivingUpIsToldInWords(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]string{1: "gave up after 1 attempt", 2: "gave up after 2 attempts"} {
		synctest.Test(t, func(t *testing.T) {
			client, _ := newClient(t, playing(lost), func(c *semelclient.Config) { c.Policy.MaxAttempts = attempts })
			text := pay(t, client).Err.Error()
			assert.Contains(t, text+"\n", want+"\n")
		})
	}
}
