package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/semel-dev/semel"
)

// transition applies a rule of the root package to a record, and says what is
// to be done about it and what to log.
type transition func(*row) (verb, *semel.AuditEntry)

// nothing is the transition of who only reads.
func nothing(*row) (verb, *semel.AuditEntry) { return leave, nil }

// guess is a record as it is expected to be, in those of its fields that the
// transition depends on. A guess that comes true saves the read.
type guess struct {
	row
	by []int // the fields
}

// guessNow is the time that guesses are made at, whatever the time is: the
// transitions only add to it, and what they add is what is sent.
var guessNow = time.Unix(1_000_000_000, 0).UTC()

var (
	// asRead is how a record that was read must still be. A decision that was
	// taken on it is then right: time only goes on, and what has lapsed or
	// expired stays so.
	asRead = []int{fieldMark}
	// asClaimed is how a record must still be for its holder, who does not
	// mind that the lease was renewed in between. Open counts for Finish.
	asClaimed = []int{fieldState, fieldToken, fieldAttempt, fieldOpen}
)

// mostTries bounds how often a decision is taken again because others have
// written the record in between.
const mostTries = 32

var errContended = errors.New("others keep writing the record")

// change applies a transition for the holder of a token and returns the record
// after it. It is one round trip where g comes true, or where nothing is to be
// written. A change that was not guessed, or without a guess, costs a second
// one, which writes only what is still as it was read.
func (s *Store) change(ctx context.Context, at place, holder semel.Token, g *guess, apply transition) (semel.Record, error) {
	for range mostTries {
		if g == nil {
			said, err := s.take(ctx, &step{at: at, do: leave})
			if err != nil {
				return semel.Record{}, err
			}
			g = known(said.row, holder)
		}
		next := g.row
		do, entry := apply(&next)
		if do == leave {
			if g.read {
				return next.record, nil
			}
			g = nil // nothing is left alone on a guess
			continue
		}
		st, err := newStep(at, do, g, &next)
		if err != nil {
			return semel.Record{}, err
		}
		st.entry = entryWords(entry)
		said, err := s.take(ctx, st)
		if err != nil {
			return semel.Record{}, err
		}
		if said.written {
			next.shift(&g.row, said.now)
			return next.record, nil
		}
		g = known(said.row, holder)
	}
	return semel.Record{}, errContended
}

// known is no guess: the record was read.
func known(r row, holder semel.Token) *guess {
	if r.record.State == semel.StateRunning && r.record.Token == holder {
		return &guess{row: r, by: asClaimed}
	}
	return &guess{row: r, by: asRead}
}

// noRecord is the guess of Begin: the key is new.
func noRecord() *guess {
	return &guess{row: row{record: semel.Record{Now: guessNow}}, by: asRead}
}

// ownClaim is the guess of Extend and Finish: the claim is the latest, runs and
// is not open.
func ownClaim(c semel.Claim) *guess {
	g := &guess{by: asClaimed}
	g.record = semel.Record{State: semel.StateRunning, Token: c.Token, Attempt: c.Attempt, Now: guessNow}
	return g
}
