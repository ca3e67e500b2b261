package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/semel-dev/semel"
)

//go:embed step.lua
var stepText string

// stepScript is sent as its digest, and as itself where the server does not
// know that yet.
var stepScript = rueidis.NewLuaScript(stepText)

// verb is what a step does with a record that is as expected.
type verb string

const (
	leave  verb = "read"
	write  verb = "write"
	remove verb = "remove"
)

// writeIf is the verb of a transition that has changed the record, or not.
func writeIf(changed bool) verb {
	if changed {
		return write
	}
	return leave
}

// step is one call of step.lua.
type step struct {
	at    place
	do    verb
	index string // what becomes of the record's place in the index
	score string // with it

	names, values []string // of the fields that are expected
	deleted       []string // names
	entry         []string // of the audit log, names and values
	times         []string // names and distances from now
	written       []string // names and values of the other fields
}

// What becomes of a record in the index. One that expires stands there at the
// time at which it does, one that is running or unknown at that of its first
// start, below zero: so both what is to be swept and what is stuck is found,
// oldest first from zero.
const (
	indexExpires = "in"   // so long from now
	indexStarted = "-in"  // the same, below zero
	indexAt      = "at"   // where it is said
	indexDrop    = "drop" // nowhere

	never = "+inf" // where a tombstone stands
)

// newStep is the step from a record as it is thought to be to next.
func newStep(at place, do verb, from *guess, next *row) (*step, error) {
	st := &step{at: at, do: do}
	before, err := from.fields()
	if err != nil {
		return nil, err
	}
	st.names, st.values = make([]string, len(from.by)), make([]string, len(from.by))
	for n, i := range from.by {
		st.names[n], st.values[n] = fieldNames[i], before[i]
	}
	if do == remove {
		st.index = indexDrop
		return st, nil
	}
	next.mark = newMark()
	after, err := next.fields()
	if err != nil {
		return nil, err
	}
	st.written = make([]string, 0, 2*fieldTimes)
	for i, value := range after {
		switch {
		case value == before[i]:
		case value == "":
			st.deleted = append(st.deleted, fieldNames[i])
		case i < fieldTimes:
			st.written = append(st.written, fieldNames[i], value)
		}
	}
	st.times = make([]string, 0, 2*(fieldCount-fieldTimes))
	for i, at := range timesOf(&next.record) {
		if f := fieldTimes + i; after[f] != "" && after[f] != before[f] {
			st.times = append(st.times, fieldNames[f], micros(at.Sub(next.record.Now)))
		}
	}
	st.reindex(&from.record, &next.record)
	return st, nil
}

func (st *step) reindex(before, after *semel.Record) {
	switch {
	case after.State == semel.StateAbsent:
		st.index, st.score = indexAt, never
	case !after.Expires.IsZero():
		if !after.Expires.Equal(before.Expires) {
			st.index, st.score = indexExpires, micros(after.Expires.Sub(after.Now))
		}
	case before.State == semel.StateAbsent, !after.FirstStarted.Equal(before.FirstStarted):
		st.index, st.score = indexStarted, micros(after.FirstStarted.Sub(after.Now))
	case !before.Expires.IsZero():
		st.index, st.score = indexAt, number(-after.FirstStarted.UnixMicro())
	}
}

// keys are the names that the script may touch.
func (st *step) keys(shift string) []string {
	keys := []string{st.at.record(), st.at.index()}
	if len(st.entry) > 0 || shift != "" {
		keys = append(keys, st.at.audit())
	}
	if shift != "" {
		keys = append(keys, st.at.tag+shift)
	}
	return keys
}

// args are what the script is told, the latest time to run at first.
func (st *step) args(until int64) []string {
	lists := [...][]string{st.names, st.values, st.deleted, st.entry, st.times, st.written}
	n := 9
	for _, list := range lists {
		n += len(list)
	}
	args := append(make([]string, 0, n),
		strconv.FormatInt(until, 10), string(st.do), st.at.id, st.index, st.score,
		strconv.Itoa(len(st.names)), strconv.Itoa(len(st.deleted)), strconv.Itoa(len(st.entry)), strconv.Itoa(len(st.times)/2))
	for _, list := range lists {
		args = append(args, list...)
	}
	return args
}

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

// answer is what the script said.
type answer struct {
	late    bool // it did nothing
	written bool
	now     int64 // on the server's clock
	row     row   // where nothing was written
}

var errLate = errors.New("the server takes longer than the limit of a statement, time after time")

// take sends a step and takes the answer. One that reached the server too late
// has had no effect, and is sent again while the caller waits: it was held up,
// or the server's clock was set forward.
func (s *Store) take(ctx context.Context, st *step) (answer, error) {
	for range mostTries {
		said, err := s.send(ctx, st)
		if err != nil || !said.late {
			return said, err
		}
		if err := ctx.Err(); err != nil {
			return said, err
		}
	}
	return answer{}, errLate
}

func (s *Store) send(ctx context.Context, st *step) (answer, error) {
	sent := time.Now()
	until := sent.Add(statementLimit)
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	args := st.args(s.clocks.there(st.at.bucket, until))
	words, err := s.exec(ctx, stepScript, st.keys(s.shift), args)
	if err != nil {
		return answer{}, err
	}
	return s.answerOf(st.at.bucket, sent, words)
}

// answerOf reads what step.lua has returned.
func (s *Store) answerOf(bucket int, sent time.Time, words []rueidis.RedisMessage) (said answer, err error) {
	kind, now, err := s.heading(bucket, sent, words)
	if err != nil {
		return said, err
	}
	said.now = now
	switch {
	case kind == "late":
		said.late = true
	case kind == "written":
		said.written = true
	case kind == "found" && len(words) == 4:
		hash, err := words[3].AsStrSlice()
		if err != nil {
			return said, err
		}
		said.row, err = rowOf(hash, said.now)
		return said, err
	default:
		return said, fmt.Errorf("the script answered %q, and %d words in all", kind, len(words))
	}
	return said, nil
}

// heading reads how every answer begins: its kind, the time, and by how much a
// test has shifted that.
func (s *Store) heading(bucket int, sent time.Time, words []rueidis.RedisMessage) (kind string, now int64, err error) {
	received := time.Now()
	if len(words) < 3 {
		return "", 0, fmt.Errorf("the script answered %d words", len(words))
	}
	if kind, err = words[0].ToString(); err != nil {
		return "", 0, err
	}
	if now, err = words[1].AsInt64(); err != nil {
		return "", 0, err
	}
	shift, err := words[2].AsInt64()
	if err != nil {
		return "", 0, err
	}
	s.clocks.learn(bucket, sent, received, now-shift)
	return kind, now, nil
}
