package scripts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/client"
)

// order is one intent of a client.
type order struct {
	door     payments.Door
	id       string // the key, or the order id where there is none
	body     []byte
	patience time.Duration
	pauses   *rand.Rand // of the one client that sends it
}

// Try is one request of a client and what it saw.
type Try struct {
	// At is when it was sent, in seconds since the order's first request, to the
	// millisecond.
	At float64 `json:"at"`
	// Took is how long the client waited for the answer, in seconds, to the
	// millisecond.
	Took   float64 `json:"took"`
	Client int     `json:"client"`
	// Status is zero when there was no answer.
	Status   int    `json:"status"`
	Code     string `json:"code,omitempty"` // of a problem
	Replayed bool   `json:"replayed,omitempty"`
	// Payment and Charge are the ids in an answer 201.
	Payment string `json:"payment,omitempty"`
	Charge  string `json:"charge,omitempty"`
	// Process is the id of the client's process, Found says that it had the
	// intent from the one before, and Killed that it was killed while it waited.
	// They are of the script in which the client is killed.
	Process int  `json:"process,omitempty"`
	Found   bool `json:"found,omitempty"`
	Killed  bool `json:"killed,omitempty"`
	// Saw is the same in words.
	Saw string `json:"saw"`

	key  string        // that was sent, where it is the client that is killed
	wait time.Duration // before the next try; negative when there is none
}

// send makes one request and says what the client can tell about it.
func (r *Runner) send(ctx context.Context, o order) Try {
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	p := client.Payment{Door: o.door, Key: o.id, Body: o.body}
	if o.door == payments.Keyless {
		p.Key, p.Order = "", o.id
	}
	got, err := r.demo.Pay(ctx, p)
	if err != nil {
		return unanswered(err, o)
	}
	return answered(got, o)
}

// unanswered is what the client knows without an answer: nothing.
func unanswered(err error, o order) Try {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return Try{Saw: fmt.Sprintf("no answer in %v, the client gives up", o.patience)}
	}
	return Try{Saw: "no answer: the connection was closed", wait: o.pause()}
}

func answered(got client.Answer, o order) Try {
	t := Try{Status: got.Status, Replayed: got.Replayed}
	var said struct {
		ID       string `json:"id"`
		ChargeID string `json:"chargeId"`
		Code     string `json:"code"`
	}
	if err := json.Unmarshal(got.Body, &said); err != nil {
		t.Saw, t.wait = fmt.Sprintf("%d with a body that is not JSON", t.Status), -1
		return t
	}
	t.Payment, t.Charge, t.Code = said.ID, said.ChargeID, said.Code
	switch {
	case t.Status == http.StatusCreated:
		t.Saw, t.wait = "201 paid, payment "+payments.Short(t.Payment), -1
		if t.Replayed {
			t.Saw += ", replayed"
		}
	case !payments.Settles(t.Status):
		t.wait = o.pause()
		t.Saw = fmt.Sprintf("%d %s", t.Status, t.Code)
		if got.RetryAfter > 0 {
			t.wait = got.RetryAfter
			t.Saw += fmt.Sprintf(", told to wait %v", t.wait)
		}
	default:
		t.Saw, t.wait = fmt.Sprintf("%d %s", t.Status, t.Code), -1
	}
	return t
}

// pause is how long a client waits by itself: a fifth of a second, more or
// less, so that clients do not march in step.
func (o order) pause() time.Duration {
	return 150*time.Millisecond + time.Duration(o.pauses.Int64N(int64(100*time.Millisecond)))
}

// seconds is d to the millisecond, which JSON writes without an exponent.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// place sends the order until it is answered for good, or ctx ends.
func (r *Runner) place(ctx context.Context, o order, client int, start time.Time) []Try {
	var tries []Try
	for {
		at := time.Since(start)
		t := r.send(ctx, o)
		t.At, t.Took, t.Client = seconds(at), seconds(time.Since(start)-at), client
		tries = append(tries, t)
		if t.wait < 0 {
			return tries
		}
		if payments.Pause(ctx, t.wait); ctx.Err() != nil {
			return tries
		}
	}
}
