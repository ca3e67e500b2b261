package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var raceChapters = []chapter{
	{name: "crash point 3: many first Begins of one key", rules: []rule{
		{name: "of sixty-four at once one claims, and the others find it busy", test: firstBeginsRace},
		{name: "of sixty-four at once on each of many keys one claims each", test: firstBeginsRaceOnManyKeys},
		{name: "of sixty-four that try until they are shown a reply one runs the work", test: triersRace},
		{name: "of sixty-four for a released key one claims", test: releasedRace},
		{name: "of sixty-four for an expired key one claims", test: expiredRace},
	}},
	{name: "crash point 4: many takeovers of one lapsed claim", rules: []rule{
		{name: "of sixty-four at once one is the next attempt", test: takeoversRace},
		{name: "of sixty-four of an unknown record one is the next attempt", test: unknownTakeoversRace},
		{name: "of sixty-four settlers of an unknown record one is the next attempt", test: settlersRace},
		{name: "either the owner's Extend is held or one takeover claims, never both", test: takeoversAgainstExtend},
		{name: "either the owner's Finish is held or one takeover claims, never both", test: takeoversAgainstFinish},
	}},
	{name: "crash point 1: Begin, and its answer is lost", rules: []rule{
		{name: "the same Begin sent many times at once is one claim, which all of them hold", test: sameBeginRaces},
	}},
}

// rounds is how often a race is run, each time on a key of its own.
const rounds = 8

// atOnce calls f(0) … f(n-1) at the same time, in no order, and returns their
// results. A fault of any ends the test.
func atOnce[T any](s *subject, n int, f func(i int) (T, error)) []T {
	s.Helper()
	results := make([]T, n)
	errs := make([]error, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for _, i := range rand.Perm(n) {
		all.Go(func() {
			<-start
			results[i], errs[i] = f(i)
		})
	}
	close(start)
	all.Wait()
	assert.NoError(s, errors.Join(errs...), "%d calls at once", n)
	return results
}

// beginAtOnce sends n Begins made by p.
func (s *subject) beginAtOnce(n int, p func() semel.BeginParams) []semel.BeginResult {
	s.Helper()
	return atOnce(s, n, func(int) (semel.BeginResult, error) {
		return s.store.Begin(s.Context(), p())
	})
}

// oneClaimed checks that exactly one of results is a claim, of the attempt
// said, that the others have the outcome said and saw that claim, and that the
// store agrees.
func oneClaimed(s *subject, results []semel.BeginResult, attempt int64, others semel.BeginOutcome) semel.Record {
	s.Helper()
	count := map[semel.BeginOutcome]int{}
	var won semel.Record
	for _, res := range results {
		count[res.Outcome]++
		if res.Outcome == semel.BeginClaimed {
			won = res.Record
		}
	}
	if count[semel.BeginClaimed] != 1 || count[others] != len(results)-1 {
		s.Fatalf("got %s, want 1 claimed and %d %s", counted(count), len(results)-1, others)
	}
	assert.Equal(s, won.Attempt, attempt, "attempt")
	rec, err := s.store.Get(s.Context(), won.Scope, won.Key)
	assert.NoError(s, err, "Get")
	assert.Equal(s, rec.Claim(), won.Claim(), "claim as read back")
	for _, res := range results {
		assert.Equal(s, res.Record.Claim(), won.Claim(), "claim as all were told")
	}
	return won
}

func counted(count map[semel.BeginOutcome]int) string {
	text := ""
	for o := semel.BeginClaimed; o <= semel.BeginReleased; o++ {
		if count[o] > 0 {
			text += fmt.Sprintf("%d %s ", count[o], o)
		}
	}
	return text
}

func firstBeginsRace(s *subject) {
	for round := range rounds {
		key := fmt.Sprint("round ", round)
		oneClaimed(s, s.beginAtOnce(racers, func() semel.BeginParams { return params(key) }), 1, semel.BeginBusy)
	}
}

func firstBeginsRaceOnManyKeys(s *subject) {
	const keys = 8
	results := atOnce(s, racers*keys, func(i int) (semel.BeginResult, error) {
		return s.store.Begin(s.Context(), params(fmt.Sprint(i%keys)))
	})
	byKey := map[string][]semel.BeginResult{}
	for i, res := range results {
		byKey[fmt.Sprint(i%keys)] = append(byKey[fmt.Sprint(i%keys)], res)
	}
	for _, of := range byKey {
		oneClaimed(s, of, 1, semel.BeginBusy)
	}
}

// triersRace has sixty-four callers who send their request again until they
// are shown a reply, the first attempts failing: the whole life of a key.
func triersRace(s *subject) {
	var (
		mu   sync.Mutex
		runs int
	)
	work := func() semel.FinishParams {
		mu.Lock()
		defer mu.Unlock()
		runs++
		if runs < 4 {
			return toReleased
		}
		return toDone
	}
	// The pause lets the one who has the key go on.
	const tries, pause = 1000, 10 * time.Millisecond
	bodies := atOnce(s, racers, func(int) (string, error) {
		for range tries {
			res, err := s.store.Begin(s.Context(), params("key"))
			switch {
			case err != nil:
				return "", err
			case res.Outcome == semel.BeginReplay:
				return string(res.Record.Reply.Body), nil
			case res.Outcome != semel.BeginClaimed:
				time.Sleep(pause)
				continue
			}
			if _, err := s.store.Finish(s.Context(), res.Record.Claim(), work()); err != nil {
				return "", err
			}
		}
		return "", fmt.Errorf("no reply after %d tries", tries)
	})
	for _, body := range bodies {
		assert.Equal(s, body, string(toDone.Reply.Body), "reply")
	}
	assert.Equal(s, runs, 4, "runs of the work")
	assert.Equal(s, s.get("key").Attempt, 4, "attempts")
}

func releasedRace(s *subject) {
	for round := range rounds {
		key := fmt.Sprint("round ", round)
		s.end(s.claim(params(key)), toReleased)
		oneClaimed(s, s.beginAtOnce(racers, func() semel.BeginParams { return params(key) }), 2, semel.BeginBusy)
	}
}

func expiredRace(s *subject) {
	for round := range rounds {
		s.end(s.claim(params(fmt.Sprint(round))), toDone)
	}
	s.advance(retention + slack)
	for round := range rounds {
		key := fmt.Sprint(round)
		oneClaimed(s, s.beginAtOnce(racers, func() semel.BeginParams { return params(key) }), 1, semel.BeginBusy)
	}
}

// inRounds makes keys in one situation, which takes their leases, and runs
// race on each.
func inRounds(s *subject, in situation, race func(key string, first semel.Record)) {
	firsts := map[string]semel.Record{}
	for round := range rounds {
		key := fmt.Sprint("round ", round)
		firsts[key] = in.make(s, resuming(key))
	}
	for key, first := range firsts {
		race(key, first)
	}
}

func takeoversRace(s *subject) {
	inRounds(s, lapsed, func(key string, first semel.Record) {
		won := oneClaimed(s, s.beginAtOnce(racers, func() semel.BeginParams { return resuming(key) }), 2, semel.BeginBusy)
		assert.Equal(s, won.OperationID, first.OperationID, "operation id")
		wantHeld(s, s.finish(first, toDone), semel.HeldSuperseded, semel.StateRunning)
		s.end(won, toDone)
	})
}

func unknownTakeoversRace(s *subject) {
	inRounds(s, unknown, func(key string, _ semel.Record) {
		oneClaimed(s, s.beginAtOnce(racers, func() semel.BeginParams { return resuming(key) }), 2, semel.BeginBusy)
	})
}

func settlersRace(s *subject) {
	inRounds(s, unknown, func(key string, _ semel.Record) {
		seen := s.get(key)
		oneClaimed(s, s.beginAtOnce(racers, func() semel.BeginParams { return forced(seen) }), 2, semel.BeginBusy)
	})
}

// againstOwner races takeovers of a lapsed claim with one call of its owner,
// and checks that one side won and the other was told so.
func againstOwner(s *subject, others semel.BeginOutcome, call func(ctx context.Context, c semel.Claim) (semel.Held, error)) {
	inRounds(s, lapsed, func(key string, first semel.Record) {
		var held semel.Held
		results := atOnce(s, racers, func(i int) (semel.BeginResult, error) {
			if i != racers/2 {
				return s.store.Begin(s.Context(), resuming(key))
			}
			var err error
			held, err = call(s.Context(), first.Claim())
			return semel.BeginResult{}, err
		})
		results = append(results[:racers/2], results[racers/2+1:]...)
		if held.Status == semel.HeldSuperseded {
			oneClaimed(s, results, 2, semel.BeginBusy)
			return
		}
		assert.Equal(s, held.Status, semel.HeldYes, "status of the owner's call")
		for _, res := range results {
			assert.Equal(s, res.Outcome, others, "outcome beside an owner who is held")
		}
	})
}

func takeoversAgainstExtend(s *subject) {
	againstOwner(s, semel.BeginBusy, func(ctx context.Context, c semel.Claim) (semel.Held, error) {
		return s.store.Extend(ctx, c, renew)
	})
}

func takeoversAgainstFinish(s *subject) {
	againstOwner(s, semel.BeginReplay, func(ctx context.Context, c semel.Claim) (semel.Held, error) {
		return s.store.Finish(ctx, c, toDone)
	})
}

func sameBeginRaces(s *subject) {
	for round := range rounds {
		p := params(fmt.Sprint("round ", round))
		for _, res := range s.beginAtOnce(racers, func() semel.BeginParams { return p }) {
			assert.Equal(s, res.Outcome, semel.BeginClaimed, "outcome")
			assert.Equal(s, res.Record.Attempt, 1, "attempt")
			assert.Equal(s, res.Record.Token, p.Token, "token")
		}
	}
}
