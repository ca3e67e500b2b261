package semelclient_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
)

func TestTheQuestionSettlesWhatIsUnknown(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for _, tt := range []struct {
		name   string
		says   semelclient.Outcome
		err    error
		answer answer
		// later is how long after Do the second one comes, and both are told.
		later         time.Duration
		first, second semelclient.Outcome
	}{
		{"it is there", semelclient.Applied, nil, lost, hour, semelclient.Applied, semelclient.Applied},
		{"it is not there, and may be on its way", semelclient.NotApplied, nil, lost, hour, semelclient.Unknown, semelclient.Unknown},
		{"it is not there, and the service says that its work is over", semelclient.NotApplied, nil, status(500, "Idempotent-Replayed", "true"), hour, semelclient.NotApplied, semelclient.NotApplied},
		{"it cannot be told", semelclient.Unknown, nil, lost, hour, semelclient.Unknown, semelclient.Unknown},
		{"it could not be asked", semelclient.Applied, errLost, lost, hour, semelclient.Unknown, semelclient.Unknown},
		{"it is too old to be sent, and is there", semelclient.Applied, nil, lost, 25 * hour, semelclient.Applied, semelclient.Applied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, _ := newClient(t, playing(tt.answer), func(c *semelclient.Config) {
					c.Policy.MaxAttempts = 1
					c.AskFunc = func(_ context.Context, in semelclient.Intent) (semelclient.Outcome, error) {
						assert.Equal(t, string(in.Body), payment)
						return tt.says, tt.err
					}
				})
				in := intend(t, client)
				r := client.Do(t.Context(), in)
				assert.Equal(t, r.Outcome, tt.first)
				if r.Settled() {
					assert.Equal(t, r.Reason, semelclient.ReasonAsked)
				}
				time.Sleep(tt.later)
				assert.Equal(t, client.Do(t.Context(), in).Outcome, tt.second)
			})
		})
	}
}

// "There is none" is believed of an old intent once nobody can have sent it for
// long enough, on a clock that does not step.
func TestThereIsNoneCountsWhenNoAttemptIsOnItsWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(lost)
		client, store := newClient(t, s, func(c *semelclient.Config) {
			c.Policy.MaxAttempts = 1
			c.AskFunc = func(context.Context, semelclient.Intent) (semelclient.Outcome, error) {
				return semelclient.NotApplied, nil
			}
		})
		in := intend(t, client)
		assert.Equal(t, client.Do(t.Context(), in).Outcome, semelclient.Unknown)
		time.Sleep(48 * time.Hour)
		var results []semelclient.Result
		book := func(r semelclient.Result) error {
			results = append(results, r)
			return nil
		}
		for range 3 {
			assert.NoError(t, client.Recover(t.Context(), book))
			time.Sleep(5*time.Minute + time.Second)
		}
		assert.Equal(t, len(results), 3)
		assert.Equal(t, results[0].Outcome, semelclient.Unknown, "an attempt just before may be on its way")
		assert.Equal(t, results[0].Reason, semelclient.ReasonTooOld)
		assert.Equal(t, results[1].Outcome, semelclient.Unknown)
		assert.Equal(t, results[2].Outcome, semelclient.NotApplied, "ten minutes later none is")
		assert.Equal(t, len(s.requests()), 1)
		assert.Equal(t, stored(t, store), 0)
	})
}

func TestAnIntentFromTheFutureIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := playing(status(201))
		client, store := newClient(t, s)
		_, err := store.Add(t.Context(), semelclient.Intent{
			Key: "K1", Method: "POST", URL: target, Created: time.Now().Add(time.Hour).Round(0),
		}, 0)
		assert.NoError(t, err)
		r := client.Do(t.Context(), semelclient.Intent{Key: "K1"})
		assert.Equal(t, r.Reason, semelclient.ReasonTooOld, "the clock was set back: its age is not known")
		assert.Equal(t, len(s.requests()), 0)
	})
}
