package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// severance is how the connections to a server go bad under a piece of work,
// and when.
type severance struct {
	name   string
	early  bool // before the work's effect; else after it, before its end is saved
	toxics []toxic
	// lasts is how long they stay bad. Nothing that is checked depends on it.
	lasts time.Duration
}

const (
	aMoment = 100 * time.Millisecond
	// aWhile is over when whoever waits for an answer has given up.
	aWhile = semel.DefaultStoreTimeout + time.Second
)

// severances are the ways: among them cuts after so many bytes of what is asked
// or answered, and so amid a statement, or between a commit and its answer.
func severances() []severance {
	all := []severance{
		{"half open as the next statement is sent", true, []toxic{swallow(asking)}, aWhile},
		{"half open as the end is sent", false, []toxic{swallow(asking)}, aWhile},
		{"half open as the end is answered", false, []toxic{swallow(answering)}, aWhile},
		{"reset as the next statement is sent", true, []toxic{reset(asking)}, aMoment},
		{"reset as the end is sent", false, []toxic{reset(asking)}, aMoment},
		{"reset as the end is answered", false, []toxic{reset(answering)}, aMoment},
		{"slow", true, []toxic{delay(100, asking), delay(100, answering)}, 10 * aMoment},
		{"cut, and the server hears of it late", false, []toxic{cutAfter(0, answering), closeLate(500, asking)}, aMoment},
		{"cut, and the client hears of it late", false, []toxic{cutAfter(0, answering), closeLate(500, answering)}, aMoment},
	}
	for _, bytes := range cutAt() {
		for _, of := range []string{asking, answering} {
			for _, early := range []bool{true, false} {
				name := fmt.Sprintf("cut after %d bytes %s, early: %v", bytes, of, early)
				all = append(all, severance{name, early, []toxic{cutAfter(bytes, of)}, aMoment})
			}
		}
	}
	return all
}

// cutAt are after how many bytes connections are cut: some places in a test, and
// with "make long" most of them.
func cutAt() []int64 {
	if os.Getenv("SEMEL_LONG") == "" {
		return []int64{0, 40}
	}
	var all []int64
	for bytes := int64(0); bytes < 1000; bytes = bytes*6/5 + 1 {
		all = append(all, bytes)
	}
	return all
}

// TestConnectionsThatAreCut: whatever becomes of the connections, and when, no
// outcome is claimed that is not so, a repeat finds the truth, and those that
// are opened later are as good as new. All are played at once: most wait.
func TestConnectionsThatAreCut(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for _, on := range shopWays {
		if on.kind.server == nil || assert.RaceDetector && !on.raced {
			continue
		}
		w := &cutWay{shopWay: on, direct: on.kind.empty(t, t)}
		next := make(chan severance)
		for range cutsAtOnce {
			all.Go(func() {
				for how := range next {
					t.Run(w.String()+", "+how.name, func(t *testing.T) { w.play(t, how) })
				}
			})
		}
		all.Go(func() {
			defer close(next)
			for _, how := range severances() {
				next <- how
			}
		})
	}
	all.Wait()
}

// cutsAtOnce is how many are played on one store at the same time: a server has
// a hundred connections for all of them.
const cutsAtOnce = 3

// cutWay is a store that is reached past all cables.
type cutWay struct {
	shopWay

	direct shopStore
	clock  sync.Mutex // of the store
}

// advance lets the leases of all claims lapse, which takes nothing from an owner
// that is alive.
func (w *cutWay) advance(t *testing.T) {
	t.Helper()
	w.clock.Lock()
	defer w.clock.Unlock()
	w.direct.advance(t, semel.DefaultLease+time.Second)
}

// cutWork is a piece of work whose connections go bad at its first run.
type cutWork struct {
	severance

	on    *cutWay
	key   string
	store shopStore
	cable *cable
	guard *semel.Guard
	runs  int
}

func (w *cutWay) play(t *testing.T, how severance) {
	t.Helper()
	by := newCable(t, w.kind.server(t))
	store := w.direct.again(t, by)
	c := &cutWork{severance: how, on: w, key: how.name, store: store, cable: by}
	c.guard = newGuard(t, store, semel.Config{Logger: unheard})
	assert.NoError(t, c.prepare(t), "before")
	assert.NoError(t, c.first(t), "the first run")
	assert.NoError(t, c.repeat(t), "its repeat")
	assert.NoError(t, c.afterwards(t), "afterwards")
}

func (c *cutWork) call(key string) semel.Call { return pgxCall(key, c.on.mode) }

// rows are those of the work.
func (c *cutWork) rows(t *testing.T) int { t.Helper(); return c.on.direct.rows(t)[c.key] }

func (c *cutWork) work(t *testing.T) func(ctx context.Context) semel.Completion {
	return func(ctx context.Context) semel.Completion {
		c.runs++
		bad := func() {
			c.cable.spoil(t, c.toxics...)
			time.AfterFunc(c.lasts, c.cable.heal)
		}
		first := c.runs == 1
		if first && c.early {
			// The transaction is open before it happens.
			if err := c.store.sell(ctx, c.on.mode, c.key+", at first"); err != nil {
				return semel.Completion{}
			}
			bad()
		}
		if err := c.store.sell(ctx, c.on.mode, c.key); err != nil {
			return semel.Completion{} // it may have had its effect in leased mode
		}

		if first && !c.early {
			bad()
		}
		return created
	}
}

// prepare has every statement prepared, so that the end of the work is one that
// takes effect where its answer is lost.
func (c *cutWork) prepare(t *testing.T) error {
	t.Helper()
	_, err := c.answered(t, c.key+", before", c.other(c.key+", before"))
	return err
}

// other is work whose connections are good.
func (c *cutWork) other(key string) func(context.Context) semel.Completion {
	return func(ctx context.Context) semel.Completion {
		if err := c.store.sell(ctx, c.on.mode, key); err != nil {
			return semel.Completion{}
		}
		return created
	}
}

// first runs the work and checks what is said of it against what is so.
func (c *cutWork) first(t *testing.T) error {
	t.Helper()
	res, err := c.guard.Run(t.Context(), c.call(c.key), c.work(t))
	c.cable.heal()
	rows := c.rows(t)
	told := fmt.Sprint(res.Outcome, ", error ", err)
	switch {
	case err == nil && res.Outcome == semel.OutcomeExecuted:
		if rows != 1 {
			return fmt.Errorf("got %d rows of what is said to be executed, want 1", rows)
		}
	case res.Outcome == semel.OutcomeReleased || errors.Is(err, semel.ErrCommitRefused):
		if rows != 0 || c.on.mode == semel.Leased {
			return fmt.Errorf("got %s with %d rows: want unknown, or no row in a transaction", told, rows)
		}
	case res.Outcome != semel.OutcomeUnknown:
		return fmt.Errorf("got %s, want executed, released or unknown", told)
	case err == nil && rows != 0 && c.on.mode != semel.Leased:
		return fmt.Errorf("got %s with %d rows, want the reply or an error", told, rows)
	}
	return nil
}

// repeat sends the request again until it is answered.
func (c *cutWork) repeat(t *testing.T) error {
	t.Helper()
	runs := c.runs
	res, err := c.answered(t, c.key, c.work(t))
	if err != nil {
		return err
	}
	rows := c.rows(t)
	switch {
	case c.on.mode != semel.Leased && rows != 1:
		return fmt.Errorf("got %d rows after %d runs, want 1", rows, c.runs)
	case rows < 1 || rows > c.runs:
		return fmt.Errorf("got %d rows after %d runs", rows, c.runs)
	case res.Outcome == semel.OutcomeReplayed && c.runs != runs:
		return fmt.Errorf("got a replay, and the work ran %d times more", c.runs-runs)
	case string(res.Reply.Body) != string(created.Reply.Body):
		return fmt.Errorf("got the reply %q, want %q", res.Reply.Body, created.Reply.Body)
	}
	return nil
}

// answered sends a request until it is executed or replayed.
func (c *cutWork) answered(t *testing.T, key string, work func(context.Context) semel.Completion) (semel.Result, error) {
	t.Helper()
	const tries = 200
	var (
		res semel.Result
		err error
	)
	for range tries {
		res, err = c.guard.Run(t.Context(), c.call(key), work)
		switch {
		case err == nil && (res.Outcome == semel.OutcomeExecuted || res.Outcome == semel.OutcomeReplayed):
			return res, nil
		case res.Outcome == semel.OutcomeInProgress:
			// Its claim has no owner any more, or the server has not noticed yet
			// that the transaction has none.
			c.on.advance(t)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return res, fmt.Errorf("no answer after %d tries, at last outcome %v, error %w", tries, res.Outcome, err)
}

// afterwards uses every connection that there may be.
func (c *cutWork) afterwards(t *testing.T) error {
	t.Helper()
	const others = 4
	errs := make([]error, others)
	var all sync.WaitGroup
	for i := range others {
		all.Go(func() {
			key := fmt.Sprint(c.key, ", other ", i)
			_, errs[i] = c.answered(t, key, c.other(key))
			if got := c.on.direct.rows(t)[key]; errs[i] == nil && got != 1 && c.on.mode != semel.Leased {
				errs[i] = fmt.Errorf("got %d rows of %q, want 1", got, key)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// A worker that cannot renew its lease is stopped before another may run.
func TestLeaseThatCannotBeRenewed(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	for _, on := range shopWays {
		if on.kind.server == nil || on.mode == semel.Atomic || assert.RaceDetector && !on.raced {
			continue
		}
		on.whole = t
		t.Run(on.String(), func(t *testing.T) {
			t.Parallel()
			direct := on.kind.empty(t, t)
			by := newCable(t, on.kind.server(t))
			g := newGuard(t, direct.again(t, by), semel.Config{Logger: unheard, Lease: lease})
			call := pgxCall("k", on.mode)
			res, err := g.Run(t.Context(), call, func(ctx context.Context) semel.Completion {
				by.spoil(t, swallow(asking))
				<-ctx.Done()
				assert.ErrorIs(t, context.Cause(ctx), semel.ErrSuperseded)
				heir := newGuard(t, direct, semel.Config{Logger: unheard})
				// Replayed where its commit took effect, and longer than anybody waits.
				assert.Eventually(t, "somebody else runs", func() bool {
					res, err := heir.Run(t.Context(), call, func(ctx context.Context) semel.Completion {
						assert.NoError(t, direct.sell(ctx, on.mode, "by the heir"))
						return created
					})
					return err == nil && (res.Outcome == semel.OutcomeExecuted || res.Outcome == semel.OutcomeReplayed)
				})
				by.heal() // before, it would renew its lease again: it has not returned
				return created
			})
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeReplayed, "what the one is told who came too late")
			assert.Equal(t, direct.rows(t), map[string]int{"by the heir": 1}, "rows")
		})
	}
}
