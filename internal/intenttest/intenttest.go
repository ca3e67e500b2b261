// Package intenttest is the contract of a store of intents, as tests that every
// store runs.
package intenttest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
)

// Run holds a store to the contract. Open opens the same store once more, as
// another process would; each subtest has keys of its own.
func Run(t *testing.T, open func(t *testing.T) semelclient.IntentStore) {
	t.Helper()
	for name, f := range map[string]func(*testing.T, func(*testing.T) semelclient.IntentStore){
		"what is added comes back byte for byte":                        comesBack,
		"one holds it at a time":                                        oneHolds,
		"of many that add a key one does":                               oneAdds,
		"of many that want to hold it one does":                         oneOfMany,
		"a settled one says how it ended":                               settled,
		"who holds it no more cannot settle it":                         fenced,
		"all are listed, and none that was forgotten":                   listed,
		"what is not there is said to be missing":                       missing,
		"keys differ in each byte":                                      keysDiffer,
		"a hold of a store is let go only by its hold":                  letGoByItsHold,
		"one that was forgotten and added anew is not its old holder's": addedAnew,
		"an Add whose context ends leaves what was there":               endsBesideAnother,
		"an Add whose context ends is done or leaves nothing":           endsAlone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, open)
		})
	}
}

const long = time.Hour

// intent returns one whose key is that of the test, with a suffix.
func intent(t *testing.T, suffix string) semelclient.Intent {
	t.Helper()
	name := strings.ReplaceAll(t.Name(), " ", "-")
	return semelclient.Intent{
		Key: name + suffix, Method: http.MethodPost, URL: "https://bank.test/payments?x=%2F&y=a+b",
		Header:  http.Header{"Idempotency-Key": {`"` + name + suffix + `"`}, "X-Two": {"a", "b"}},
		Body:    []byte("{\"amount\":1}\n\x00\xff\xfe"),
		Created: time.Now().Round(time.Microsecond),
	}
}

func add(t *testing.T, s semelclient.IntentStore, in semelclient.Intent) semelclient.Hold {
	t.Helper()
	h, err := s.Add(t.Context(), in, long)
	assert.NoError(t, err)
	return h
}

func comesBack(t *testing.T, open func(*testing.T) semelclient.IntentStore) {
	a, b := open(t), open(t)
	for i, body := range [][]byte{[]byte("{\"amount\":1}\n\x00\xff\xfe"), {}, bytes.Repeat([]byte{0, 200, '"'}, 200_000)} {
		in := intent(t, fmt.Sprint(i))
		in.Body = body
		assert.NoError(t, a.Release(t.Context(), add(t, a, in)))
		entry, err := b.Hold(t.Context(), in.Key, long)
		assert.NoError(t, err)
		assert.True(t, entry.Settlement == nil, "it is not settled")
		assert.True(t, entry.Intent.Created.Equal(in.Created), "created %v, want %v", entry.Intent.Created, in.Created)
		assert.True(t, bytes.Equal(entry.Intent.Body, in.Body), "the body is the same")
		assert.Equal(t, entry.Intent.Header, in.Header)
		assert.Equal(t, entry.Intent.Method+entry.Intent.URL+entry.Intent.Key, in.Method+in.URL+in.Key)
		assert.Equal(t, entry.Hold.Key, in.Key)
	}
}

func oneHolds(t *testing.T, open func(*testing.T) semelclient.IntentStore) {
	a, b := open(t), open(t)
	in := intent(t, "")
	h := add(t, a, in)
	for _, s := range []semelclient.IntentStore{a, b} {
		_, err := s.Hold(t.Context(), in.Key, long)
		assert.ErrorIs(t, err, semelclient.ErrIntentHeld)
		_, err = s.Add(t.Context(), in, long)
		assert.ErrorIs(t, err, semelclient.ErrIntentKnown)
	}
	assert.NoError(t, a.Release(t.Context(), h))
	entry, err := b.Hold(t.Context(), in.Key, long)
	assert.NoError(t, err)
	assert.True(t, entry.Hold.Token != h.Token, "another hold has another token")
	_, err = a.Hold(t.Context(), in.Key, long)
	assert.ErrorIs(t, err, semelclient.ErrIntentHeld)
}

// race runs f for many at once and returns how many it was nil for. Any other
// error has to match want.
func race(t *testing.T, open func(*testing.T) semelclient.IntentStore, want error, f func(s semelclient.IntentStore) error) int {
	t.Helper()
	stores := []semelclient.IntentStore{open(t), open(t), open(t)}
	errs := make([]error, 24)
	start := make(chan struct{})
	var work sync.WaitGroup
	for i := range errs {
		work.Go(func() {
			<-start
			errs[i] = f(stores[i%len(stores)])
		})
	}
	close(start)
	work.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		assert.ErrorIs(t, err, want)
	}
	return won
}

func oneAdds(t *testing.T, open func(*testing.T) semelclient.IntentStore) {
	in := intent(t, "")
	won := race(t, open, semelclient.ErrIntentKnown, func(s semelclient.IntentStore) error {
		_, err := s.Add(context.WithoutCancel(t.Context()), in, long)
		return err
	})
	assert.Equal(t, won, 1)
}

func oneOfMany(t *testing.T, open func(*testing.T) semelclient.IntentStore) {
	in := intent(t, "")
	s := open(t)
	assert.NoError(t, s.Release(t.Context(), add(t, s, in)))
	won := race(t, open, semelclient.ErrIntentHeld, func(s semelclient.IntentStore) error {
		_, err := s.Hold(context.WithoutCancel(t.Context()), in.Key, long)
		return err
	})
	assert.Equal(t, won, 1)
}

func settled(t *testing.T, open func(*testing.T) semelclient.IntentStore) {
	a, b := open(t), open(t)
	in := intent(t, "")
	ending := func() semelclient.Settlement {
		return semelclient.Settlement{
			Outcome: semelclient.NotApplied, Reason: semelclient.ReasonReply, Status: 402,
			Header: http.Header{"X-Id": {"1"}}, Body: []byte("no\x00\xff"), Truncated: true, Replayed: true,
		}
	}
	spoil := func(s semelclient.Settlement) { // whoever has a result may do with it as they like
		s.Header.Set("X-Id", "2")
		s.Body[0] = 'y'
	}
	given, want := ending(), ending()
	assert.NoError(t, a.Settle(t.Context(), add(t, a, in), given))
	spoil(given)
	for _, s := range []semelclient.IntentStore{a, b, a} {
		entry, err := s.Hold(t.Context(), in.Key, long)
		assert.NoError(t, err)
		assert.Equal(t, entry.Settlement, &want)
		assert.Equal(t, entry.Hold, semelclient.Hold{}, "a settled one is not held")
		spoil(*entry.Settlement)
	}
	_, err := b.Add(t.Context(), in, long)
	assert.ErrorIs(t, err, semelclient.ErrIntentKnown)
}

func fenced(t *testing.T, open func(*testing.T) semelclient.IntentStore) {
	a, b := open(t), open(t)
	in := intent(t, "")
	end := semelclient.Settlement{Outcome: semelclient.Applied}
	old := add(t, a, in)
	assert.NoError(t, a.Release(t.Context(), old))
	assert.ErrorIs(t, a.Settle(t.Context(), old, end), semelclient.ErrIntentHeld, "let go")
	entry, err := b.Hold(t.Context(), in.Key, long)
	assert.NoError(t, err)
	assert.ErrorIs(t, a.Settle(t.Context(), old, end), semelclient.ErrIntentHeld, "another's")
	assert.NoError(t, b.Settle(t.Context(), entry.Hold, end))
	assert.ErrorIs(t, b.Settle(t.Context(), entry.Hold, end), semelclient.ErrIntentHeld, "settled")

	gone := intent(t, "-gone")
	h := add(t, a, gone)
	assert.NoError(t, b.Forget(t.Context(), gone.Key))
	assert.ErrorIs(t, a.Settle(t.Context(), h, end), semelclient.ErrIntentHeld, "forgotten")
	_, err = a.Hold(t.Context(), gone.Key, long)
	assert.ErrorIs(t, err, semelclient.ErrIntentMissing)
}

func listed(t *testing.T, open func(*testing.T) semelclient.IntentStore) {
	a, b := open(t), open(t)
	var want []string
	for i := range 5 {
		in := intent(t, fmt.Sprint(i))
		h := add(t, a, in)
		switch i {
		case 1:
			assert.NoError(t, a.Settle(t.Context(), h, semelclient.Settlement{}))
		case 2:
			assert.NoError(t, a.Release(t.Context(), h))
		case 3:
			assert.NoError(t, b.Forget(t.Context(), in.Key))
			continue
		}
		want = append(want, in.Key)
	}
	prefix := strings.TrimSuffix(want[0], "0")
	for _, s := range []semelclient.IntentStore{a, b} {
		var got []string
		for key, err := range s.Keys(t.Context()) {
			assert.NoError(t, err)
			if strings.HasPrefix(key, prefix) {
				got = append(got, key)
			}
		}
		slices.Sort(got)
		assert.Equal(t, got, want)
		for _, err := range s.Keys(t.Context()) {
			assert.NoError(t, err)
			break // a caller may stop
		}
	}
}

func missing(t *testing.T, open func(*testing.T) semelclient.IntentStore) {
	s := open(t)
	_, err := s.Hold(t.Context(), "no-such-key", long)
	assert.ErrorIs(t, err, semelclient.ErrIntentMissing)
	assert.NoError(t, s.Forget(t.Context(), "no-such-key"))
	assert.NoError(t, s.Release(t.Context(), semelclient.Hold{Key: "no-such-key", Token: "x"}))
}

func keysDiffer(t *testing.T, open func(*testing.T) semelclient.IntentStore) {
	s := open(t)
	for _, suffix := range []string{"a", "A", "a ", "a/../b", "~", "%", "", strings.Repeat("x", 200-len(t.Name()))} {
		in := intent(t, suffix)
		in.Body = []byte(suffix)
		assert.NoError(t, s.Release(t.Context(), add(t, s, in)))
	}
	for _, suffix := range []string{"a", "A", "a "} {
		entry, err := s.Hold(t.Context(), intent(t, suffix).Key, long)
		assert.NoError(t, err)
		assert.Equal(t, string(entry.Intent.Body), suffix)
	}
}

func letGoByItsHold(t *testing.T, open func(*testing.T) semelclient.IntentStore) {
	s := open(t)
	in := intent(t, "")
	old := add(t, s, in)
	assert.NoError(t, s.Release(t.Context(), old))
	entry, err := s.Hold(t.Context(), in.Key, long)
	assert.NoError(t, err)
	assert.NoError(t, s.Release(t.Context(), old), "a late one")
	_, err = s.Hold(t.Context(), in.Key, long)
	assert.ErrorIs(t, err, semelclient.ErrIntentHeld)
	assert.NoError(t, s.Settle(t.Context(), entry.Hold, semelclient.Settlement{}))
}

func addedAnew(t *testing.T, open func(*testing.T) semelclient.IntentStore) {
	a, b, c := open(t), open(t), open(t)
	for i, again := range []semelclient.IntentStore{a, b} {
		in := intent(t, fmt.Sprint(i))
		old := add(t, a, in)
		assert.NoError(t, b.Forget(t.Context(), in.Key))
		in.Body = []byte("another request")
		h := add(t, again, in)
		assert.True(t, h.Token != old.Token, "another hold has another token")
		applied := semelclient.Settlement{Outcome: semelclient.Applied, Reason: semelclient.ReasonReply}
		assert.ErrorIs(t, a.Settle(t.Context(), old, applied), semelclient.ErrIntentHeld)
		assert.NoError(t, a.Release(t.Context(), old))
		for _, s := range []semelclient.IntentStore{a, b, c} {
			_, err := s.Hold(t.Context(), in.Key, long)
			assert.ErrorIs(t, err, semelclient.ErrIntentHeld)
		}
		refused := semelclient.Settlement{Outcome: semelclient.NotApplied, Reason: semelclient.ReasonReply, Status: 402}
		assert.NoError(t, again.Settle(t.Context(), h, refused))
		entry, err := c.Hold(t.Context(), in.Key, long)
		assert.NoError(t, err)
		assert.Equal(t, string(entry.Intent.Body), "another request")
		assert.Equal(t, entry.Settlement, &refused)
	}

	in := intent(t, "-free")
	assert.NoError(t, a.Release(t.Context(), add(t, a, in)))
	err := a.Settle(t.Context(), semelclient.Hold{Key: in.Key}, semelclient.Settlement{})
	assert.ErrorIs(t, err, semelclient.ErrIntentHeld, "that nobody holds it is no hold")
}

// looks is how often a store may look at its context, and more.
const looks = 12

// ending is a context that ends when somebody looks at it for the nth time, so
// that it ends in the midst of things.
type ending struct {
	context.Context

	left atomic.Int64
	end  context.CancelFunc
}

func endsAt(t *testing.T, n int) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	e := &ending{Context: ctx, end: cancel}
	e.left.Store(int64(n))
	return e
}

func (e *ending) look() {
	if e.left.Add(-1) <= 0 {
		e.end()
	}
}

// Done implements context.Context.
func (e *ending) Done() <-chan struct{} {
	e.look()
	return e.Context.Done()
}

// Err implements context.Context.
func (e *ending) Err() error {
	e.look()
	return e.Context.Err()
}

func endsBesideAnother(t *testing.T, open func(*testing.T) semelclient.IntentStore) {
	a, b := open(t), open(t)
	for n := range looks {
		in := intent(t, fmt.Sprint(n))
		h := add(t, a, in)
		other := in
		other.Body = []byte("another request")
		for _, s := range []semelclient.IntentStore{a, b} {
			_, err := s.Add(endsAt(t, n), other, long)
			assert.True(t, err != nil, "the key is there already")
			_, err = s.Hold(t.Context(), in.Key, long)
			assert.ErrorIs(t, err, semelclient.ErrIntentHeld, "context %d", n)
		}
		assert.NoError(t, a.Settle(t.Context(), h, semelclient.Settlement{}))
		entry, err := b.Hold(t.Context(), in.Key, long)
		assert.NoError(t, err)
		assert.Equal(t, string(entry.Intent.Body), string(in.Body))
	}
}

func endsAlone(t *testing.T, open func(*testing.T) semelclient.IntentStore) {
	a, b := open(t), open(t)
	for n := range looks {
		in := intent(t, fmt.Sprint(n))
		h, err := a.Add(endsAt(t, n), in, long)
		if err == nil {
			_, err = b.Hold(t.Context(), in.Key, long)
			assert.ErrorIs(t, err, semelclient.ErrIntentHeld)
			assert.NoError(t, a.Settle(t.Context(), h, semelclient.Settlement{}))
			continue
		}
		_, err = b.Hold(t.Context(), in.Key, long)
		assert.ErrorIs(t, err, semelclient.ErrIntentMissing, "context %d", n)
		assert.NoError(t, b.Release(t.Context(), add(t, b, in)))
	}
}
