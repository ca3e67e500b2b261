package semel_test

import (
	"context"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

func TestARecordIsStuckWhenItWaitsForSomebody(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_700_000_000, 0)
	running := func(leaseLeft time.Duration) semel.Record {
		now := start.Add(time.Hour)
		return semel.Record{State: semel.StateRunning, FirstStarted: start, Now: now, LeaseEnd: now.Add(leaseLeft)}
	}
	in := func(state semel.State) semel.Record {
		return semel.Record{State: state, FirstStarted: start, Now: start.Add(time.Hour)}
	}
	for name, c := range map[string]struct {
		record semel.Record
		after  time.Duration
		want   bool
	}{
		"unknown":                           {in(semel.StateUnknown), time.Hour, true},
		"unknown, and younger":              {in(semel.StateUnknown), time.Hour + 1, false},
		"running, its lease lapsed":         {running(0), time.Hour, true},
		"running, lapsed, and younger":      {running(0), time.Hour + 1, false},
		"running":                           {running(1), time.Hour, false},
		"done":                              {in(semel.StateDone), 0, false},
		"released":                          {in(semel.StateReleased), 0, false},
		"absent":                            {semel.Record{}, 0, false},
		"unknown, where no time has passed": {semel.Record{State: semel.StateUnknown, FirstStarted: start, Now: start}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.record.Stuck(c.after), c.want)
		})
	}
}

// pages is a Lister whose list is the given records, in order.
type pages struct {
	semel.Lister

	records []semel.Record
	asked   []semel.ListParams
	err     error
}

func (l *pages) List(_ context.Context, p semel.ListParams) ([]semel.Record, error) {
	l.asked = append(l.asked, p)
	from := 0
	for i := range l.records {
		if l.records[i].Position() == p.After {
			from = i + 1
		}
	}
	return l.records[from:min(from+p.Limit, len(l.records))], l.err
}

func TestListStuck(t *testing.T) {
	t.Parallel()
	list := &pages{}
	for i, key := range []string{"a", "b", "c", "d", "e"} {
		r := semel.Record{Key: key, State: semel.StateUnknown, FirstStarted: time.Unix(int64(i)+1, 0), Now: time.Unix(3600, 0)}
		if key == "a" || key == "c" {
			r.State, r.LeaseEnd = semel.StateRunning, r.Now.Add(time.Minute)
		}
		list.records = append(list.records, r)
	}
	keys := func(limit int) (all string) {
		found, err := semel.ListStuck(t.Context(), list, semel.ListParams{Limit: limit, OlderThan: time.Minute, States: []semel.State{semel.StateDone}})
		assert.NoError(t, err)
		for i := range found {
			all += found[i].Key
		}
		return all
	}
	assert.Equal(t, keys(2), "bd", "what is found across pages")
	assert.Equal(t, len(list.asked), 2, "pages")
	assert.Equal(t, list.asked[0].States, []semel.State{semel.StateRunning, semel.StateUnknown})
	assert.Equal(t, list.asked[1].After, list.records[1].Position())
	assert.Equal(t, keys(3), "bde", "all")
	assert.Equal(t, keys(100), "bde", "all, on one page")
	assert.Equal(t, keys(1), "b", "the first, though it is not the first of its page")
	assert.Equal(t, keys(0), "", "none")

	list.err = errDown
	_, err := semel.ListStuck(t.Context(), list, semel.ListParams{Limit: 1})
	assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
	assert.ErrorIs(t, err, errDown)
}
