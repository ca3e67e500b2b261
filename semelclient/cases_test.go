package semelclient_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
	"github.com/semel-dev/semel/semelclient/retry"
)

// The public faults, as tests; each is named for its kind.

// post sends a request through an http.Client on the client's RoundTripper.
func post(t *testing.T, c *semelclient.Client, method string, body io.Reader, headers ...string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, body)
	assert.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header[headers[i]] = append(req.Header[headers[i]], headers[i+1])
	}
	resp, err := (&http.Client{Transport: c.RoundTripper()}).Do(req)
	if err == nil {
		t.Cleanup(func() { resp.Body.Close() })
	}
	return resp, err
}

func TestHeaderName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(status(503), status(201))
		client, _ := newClient(t, s)
		_, err := post(t, client, http.MethodPost, strings.NewReader(payment), "idempotency-key", "K1")
		assert.NoError(t, err)
		same(t, s.requests())
		assert.Equal(t, s.requests()[0].key[0], "K1", "the caller's key, whatever the case of its name")
	})
}

func TestClientKeyStability(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct{ given, want string }{{"K1", "K1"}, {`"K1"`, `"K1"`}, {"", ""}} {
			s := playing(status(503), status(201))
			client, _ := newClient(t, s)
			var headers []string
			if tt.given != "" {
				headers = []string{"Idempotency-Key", tt.given}
			}
			resp, err := post(t, client, http.MethodPost, strings.NewReader(payment), headers...)
			assert.NoError(t, err)
			assert.Equal(t, resp.StatusCode, 201)
			same(t, s.requests())
			assert.Equal(t, len(s.requests()), 2)
			if tt.want != "" {
				assert.Equal(t, s.requests()[0].key[0], tt.want)
			}

			s = playing(status(503), status(201))
			client, _ = newClient(t, s)
			h := http.Header{}
			if tt.given != "" {
				h.Set("Idempotency-Key", tt.given)
			}
			in, err := client.Intend(t.Context(), http.MethodPost, target, h, nil)
			assert.NoError(t, err)
			assert.Equal(t, client.Do(t.Context(), in).Outcome, semelclient.Applied)
			same(t, s.requests())
			if tt.want != "" {
				assert.Equal(t, s.requests()[0].key[0], tt.want)
				assert.Equal(t, in.Key, "K1")
			}
		}
	})
}

func TestClientKeyDerivation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(status(201))
		client, _ := newClient(t, s)
		a, b := intend(t, client), intend(t, client)
		assert.True(t, a.Key != b.Key, "two intents with equal content are two")
		client.Do(t.Context(), a)
		client.Do(t.Context(), b)
		assert.Equal(t, len(s.requests()), 2)
		_, err := client.Intend(t.Context(), http.MethodPost, target, http.Header{"Idempotency-Key": {a.Key}}, nil)
		assert.ErrorIs(t, err, semelclient.ErrIntentKnown)
	})
}

func TestRetryBody(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "body")
	assert.NoError(t, os.WriteFile(file, []byte(payment), 0o600))
	bodies := map[string]func() io.Reader{
		"bytes":          func() io.Reader { return bytes.NewReader([]byte(payment)) },
		"strings.Reader": func() io.Reader { return strings.NewReader(payment) },
		"bytes.Buffer":   func() io.Reader { return bytes.NewBufferString(payment) },
		"os.File": func() io.Reader {
			f, err := os.Open(file)
			assert.NoError(t, err)
			return f
		},
		"io.MultiReader": func() io.Reader {
			return io.MultiReader(strings.NewReader(payment[:10]), strings.NewReader(payment[10:]))
		},
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := body()
			synctest.Test(t, func(t *testing.T) {
				s := playing(status(503), status(503), status(201))
				client, _ := newClient(t, s)
				_, err := post(t, client, http.MethodPost, reader)
				assert.NoError(t, err)
				assert.Equal(t, len(s.requests()), 3)
				same(t, s.requests())
				assert.Equal(t, s.requests()[2].body, payment)
			})
			if f, ok := reader.(*os.File); ok {
				assert.ErrorIs(t, f.Close(), os.ErrClosed)
			}
		})
	}
	t.Run("one that is too long to keep is refused before the first byte", func(t *testing.T) {
		t.Parallel()
		for _, reader := range []io.Reader{
			strings.NewReader(strings.Repeat("x", 1<<20+1)), io.LimitReader(endless{}, 1<<30), io.MultiReader(endless{}),
		} {
			s := playing(status(201))
			client, store := newClient(t, s)
			_, err := post(t, client, http.MethodPost, reader)
			assert.ErrorIs(t, err, semelclient.ErrIntentInvalid)
			assert.Contains(t, err.Error(), "Config.MaxBody")
			assert.Equal(t, len(s.requests())+stored(t, store), 0)
		}
	})
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestRetryEligibility(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodHead} {
		for _, failure := range []answer{lost, status(429), status(503)} {
			synctest.Test(t, func(t *testing.T) {
				s := playing(failure, status(200))
				client, store := newClient(t, s)
				post(t, client, method, nil)
				assert.Equal(t, len(s.requests()), 1, "%s without a key is passed on as it is", method)
				assert.Equal(t, len(s.requests()[0].key), 0)
				assert.Equal(t, stored(t, store), 0)
			})
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPatch} {
		for _, failure := range []answer{lost, status(429), status(503)} {
			synctest.Test(t, func(t *testing.T) {
				s := playing(failure, status(200))
				client, store := newClient(t, s)
				resp, err := post(t, client, method, nil)
				assert.NoError(t, err)
				assert.Equal(t, resp.StatusCode, 200)
				assert.Equal(t, len(s.requests()), 2)
				same(t, s.requests())
				assert.Equal(t, stored(t, store), 0, "whose outcome is known is forgotten")
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := playing(lost, status(200))
		client, _ := newClient(t, s)
		_, err := post(t, client, http.MethodPut, strings.NewReader("x"), "Idempotency-Key", "K1")
		assert.NoError(t, err)
		assert.Equal(t, len(s.requests()), 2, "PUT with a key is an intent")
	})
}

func TestRetryOnConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := problem(409, "in-progress", "in-progress", true, "Retry-After", "1")
		s := playing(silent, busy, busy, status(201))
		client, _ := newClient(t, s, func(c *semelclient.Config) { c.AttemptTimeout = time.Second })
		begun := time.Now()
		r := pay(t, client)
		took := time.Since(begun)
		assert.Equal(t, r.Outcome, semelclient.Applied)
		assert.Equal(t, r.Attempts, 4)
		assert.True(t, took >= 3*time.Second && took < 4*time.Second, "it waits as it is told: %v", took)
		same(t, s.requests())
	})
}

func TestRetryTiming(t *testing.T) {
	t.Parallel()
	gap := func(t *testing.T, a answer) time.Duration {
		t.Helper()
		s := playing(a, status(201))
		client, _ := newClient(t, s)
		assert.Equal(t, pay(t, client).Outcome, semelclient.Applied)
		got := s.requests()
		assert.Equal(t, len(got), 2)
		return got[1].at.Sub(got[0].at)
	}
	date := func(d, clock time.Duration) []string {
		now := time.Now().UTC().Add(clock)
		return []string{"Retry-After", now.Add(d).Format(http.TimeFormat), "Date", now.Format(http.TimeFormat)}
	}
	t.Run("what it asks for is waited, and a little more that differs", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			seen := make(map[time.Duration]bool)
			for range 20 {
				for _, a := range []answer{
					status(429, "Retry-After", "3"), status(503, "Retry-After", " 3 "),
					dated(503, date(3*time.Second, 0)), dated(503, date(3*time.Second, -1000*time.Hour)), dated(503, date(3*time.Second, 1000*time.Hour)),
				} {
					wait := gap(t, a)
					assert.True(t, wait >= 3*time.Second && wait <= 4*time.Second, "waited %v", wait)
					seen[wait] = true
				}
			}
			assert.True(t, len(seen) > 90, "callers do not come back together: %d of 100 differ", len(seen))
		})
	})
	t.Run("what cannot be read is no wait", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			for _, a := range []answer{
				status(503, "Retry-After", "3.5"), status(503, "Retry-After", "soon"), status(503, "Retry-After", ""),
				status(503, "Retry-After", "-3"), status(503, "Retry-After", "30", "Retry-After", "40"),
				dated(503, date(-time.Hour, 0)), dated(503, date(time.Minute, 0)[:2]),
			} {
				wait := gap(t, a)
				assert.True(t, wait <= time.Second, "waited %v", wait)
			}
		})
	})
	t.Run("a success is not sent again", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := playing(status(200, "Retry-After", "1"))
			client, _ := newClient(t, s)
			assert.Equal(t, pay(t, client).Attempts, 1)
		})
	})
	t.Run("an hour does not outlive the deadline", func(t *testing.T) {
		t.Parallel()
		for _, hour := range []string{"3600", "99999999999999999999999999"} {
			synctest.Test(t, func(t *testing.T) {
				s := playing(status(503, "Retry-After", hour))
				client, _ := newClient(t, s)
				begun := time.Now()
				r := pay(t, client)
				assert.Equal(t, time.Since(begun), time.Duration(0), "it is told at once")
				assert.Equal(t, r.Outcome, semelclient.Unknown)
				assert.ErrorIs(t, r.Err, context.DeadlineExceeded)
				assert.Equal(t, r.Status, 503)
			})
		}
	})
}

// dated is status with a Date of its own, or none.
func dated(code int, headers []string) answer {
	return func(req *http.Request) (*http.Response, error) {
		resp, err := status(code)(req)
		resp.Header.Del("Date")
		for i := 0; i < len(headers); i += 2 {
			resp.Header.Set(headers[i], headers[i+1])
		}
		return resp, err
	}
}

func TestRetryContext(t *testing.T) {
	t.Parallel()
	t.Run("a deadline in the middle of the tries", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := playing(func(req *http.Request) (*http.Response, error) {
				time.Sleep(400 * time.Millisecond)
				return status(503, "Retry-After", "1")(req)
			})
			client, _ := newClient(t, s)
			in := intend(t, client)
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			r := client.Do(ctx, in)
			assert.True(t, time.Since(begun) <= 500*time.Millisecond, "took %v", time.Since(begun))
			assert.Equal(t, r.Attempts, 1)
			assert.Equal(t, r.Status, 503)
			assert.ErrorIs(t, r.Err, context.DeadlineExceeded)
			assert.Equal(t, r.Outcome, semelclient.Unknown)
		})
	})
	t.Run("cancelled while it waits", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := playing(status(429, "Retry-After", "60"))
			client, _ := newClient(t, s)
			in := intend(t, client)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Second, cancel)
			begun := time.Now()
			r := client.Do(ctx, in)
			assert.Equal(t, time.Since(begun), 10*time.Second)
			assert.Equal(t, len(s.requests()), 1)
			assert.ErrorIs(t, r.Err, context.Canceled)
			assert.Equal(t, r.Outcome, semelclient.NotApplied, "a 429 is no attempt that took effect")
		})
	})
	t.Run("cancelled while it sends", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := playing(silent)
			client, _ := newClient(t, s)
			in := intend(t, client)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Second, cancel)
			begun := time.Now()
			r := client.Do(ctx, in)
			assert.Equal(t, time.Since(begun), 10*time.Second)
			assert.Equal(t, len(s.requests()), 1)
			assert.Equal(t, r.Outcome, semelclient.Unknown)
			assert.ErrorIs(t, r.Err, context.Canceled)
		})
	})
	t.Run("an attempt that hangs is given up, and the next one asks", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := playing(silent, status(201))
			client, _ := newClient(t, s)
			begun := time.Now()
			assert.Equal(t, pay(t, client).Outcome, semelclient.Applied)
			assert.True(t, time.Since(begun) < 31*time.Second, "took %v", time.Since(begun))
		})
	})
}

func TestProxyRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(status(502), status(504), status(201, "Idempotent-Replayed", "true"))
		client, _ := newClient(t, s)
		r := pay(t, client)
		assert.Equal(t, r.Outcome, semelclient.Applied, "what a proxy could not tell is asked again with the key")
		assert.True(t, r.Replayed)
		same(t, s.requests())
	})
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	for _, code := range []int{301, 302, 303} {
		synctest.Test(t, func(t *testing.T) {
			s := playing(status(code, "Location", "/orders/1"), status(200))
			client, _ := newClient(t, s)
			pay(t, client)
			assert.Equal(t, len(s.requests()), 1, "Do leaves the address in the result")

			s = playing(status(code, "Location", "/orders/1"), status(200))
			client, _ = newClient(t, s)
			resp, err := post(t, client, http.MethodPost, strings.NewReader(payment), "Idempotency-Key", "K1")
			assert.NoError(t, err)
			assert.Equal(t, resp.StatusCode, 200)
			got := s.requests()
			assert.Equal(t, len(got), 2)
			assert.Equal(t, got[1].method+" "+got[1].path, "GET /orders/1", "what follows is a GET")
			assert.Equal(t, got[1].body, "")
			assert.Equal(t, len(got[1].key), 0, "without the key")
		})
	}
	for _, code := range []int{307, 308} {
		synctest.Test(t, func(t *testing.T) {
			s := playing(status(code, "Location", "https://evil.test/payments"), status(200))
			client, _ := newClient(t, s)
			_, err := post(t, client, http.MethodPost, strings.NewReader(payment), "Idempotency-Key", "K1")
			assert.ErrorIs(t, err, semelclient.ErrIntentInvalid)
			assert.Equal(t, len(s.requests()), 1, "nobody else sees the request or its key")
		})
	}
}

func TestTheRoundTripperSaysWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(lost)
		client, store := newClient(t, s, func(c *semelclient.Config) { c.Policy = retry.Policy{MaxAttempts: 2} })
		_, err := post(t, client, http.MethodPost, strings.NewReader(payment), "Idempotency-Key", "K1", "Authorization", "Bearer x")
		var unknown *semelclient.OutcomeError
		assert.True(t, errors.As(err, &unknown), "an OutcomeError: %v", err)
		assert.Equal(t, unknown.Result.Outcome, semelclient.Unknown)
		assert.Equal(t, unknown.Result.Intent.Key, "K1")
		assert.Contains(t, err.Error(), "never with another")
		assert.ErrorIs(t, err, errLost)
		assert.Equal(t, stored(t, store), 1, "it stays for Recover")
		assert.Equal(t, s.requests()[1].header.Get("Authorization"), "Bearer x")

		// The caller sends it again.
		s.answers = []answer{status(201)}
		_, err = post(t, client, http.MethodPost, strings.NewReader("other"), "Idempotency-Key", "K1")
		assert.ErrorIs(t, err, semelclient.ErrIntentInvalid, "another request under the key")
		resp, err := post(t, client, http.MethodPost, strings.NewReader(payment), "Idempotency-Key", "K1")
		assert.NoError(t, err)
		assert.Equal(t, resp.StatusCode, 201)
		same(t, s.requests())
		assert.Equal(t, stored(t, store), 0)
	})
}
