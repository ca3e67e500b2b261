package redisstore

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// taken is what is stored after a step on f at the server's time now, but for
// the mark.
func taken(t *testing.T, f fields, st *step, now int64) fields {
	t.Helper()
	set := func(name, value string) {
		for i, n := range fieldNames {
			if n == name {
				f[i] = value
				return
			}
		}
		t.Fatalf("a step writes the field %q", name)
	}
	for i := 0; i < len(st.written); i += 2 {
		set(st.written[i], st.written[i+1])
	}
	for i := 0; i < len(st.times); i += 2 {
		distance, err := strconv.ParseInt(st.times[i+1], 10, 64)
		assert.NoError(t, err)
		set(st.times[i], number(now+distance))
	}
	for _, name := range st.deleted {
		set(name, "")
	}
	f[fieldMark] = ""
	return f
}

// stored is r as it is stored, but for the mark.
func stored(t *testing.T, r *row) fields {
	t.Helper()
	f, err := r.fields()
	assert.NoError(t, err)
	f[fieldMark] = ""
	return f
}

var someTime = time.UnixMicro(1_790_000_000_123_456).UTC()

// someRunning is a record that runs under c, and else any.
func someRunning(c semel.Claim) row {
	ago := func() time.Time {
		return someTime.Add(-time.Duration(rand.Int64N(int64(time.Hour)))).Truncate(time.Microsecond)
	}
	r := row{read: true, mark: newMark()}
	r.record = semel.Record{
		Scope: c.Scope, Key: c.Key, Token: c.Token, Attempt: c.Attempt,
		State:        semel.StateRunning,
		Generation:   rand.Int64N(2),
		OperationID:  semel.NewOperationID("s", c.Scope, c.Key, rand.Int64()),
		Fingerprint:  semel.FingerprintOf([]byte(newMark())),
		AllInTx:      rand.IntN(2) == 0,
		ReplyStarted: rand.IntN(2) == 0,
		Trace:        newMark(),
		Created:      ago(), FirstStarted: ago(), Claimed: ago(), Renewed: ago(),
		LeaseEnd: ago(), // it has lapsed
		Now:      someTime,
	}
	return r
}

func TestAGuessThatComesTrueWritesWhatTheRecordAsksFor(t *testing.T) {
	t.Parallel()
	claim := semel.Claim{Scope: "s", Key: "k", Token: semel.NewToken(), Attempt: 3}
	transitions := map[string]func(*semel.Record) bool{
		"extend": func(r *semel.Record) bool { _, c := r.Extend(claim, semel.ExtendParams{Lease: time.Minute}); return c },
		"extend, reply starts": func(r *semel.Record) bool {
			_, c := r.Extend(claim, semel.ExtendParams{Lease: time.Minute, ReplyStarted: true})
			return c
		},
	}
	for name, p := range map[string]semel.FinishParams{
		"done":           {To: semel.StateDone, KeepReply: true, Retention: time.Hour, Reply: semel.Reply{Status: 201, Header: semel.Header{"A": {"1"}}, Body: []byte("b")}},
		"done, no reply": {To: semel.StateDone, Retention: time.Hour, Reply: semel.Reply{Status: 500}},
		"released":       {To: semel.StateReleased, Retention: time.Hour},
		"unknown":        {To: semel.StateUnknown, Retention: time.Hour},
	} {
		transitions[name] = func(r *semel.Record) bool { _, changed := r.Finish(claim, p); return changed }
	}
	for name, transition := range transitions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := ownClaim(claim)
			next := g.row
			assert.True(t, transition(&next.record), "a guess is always changed")
			st, err := newStep(place{}, write, g, &next)
			assert.NoError(t, err)
			for range 100 {
				record := someRunning(claim)
				before := stored(t, &record)
				guessed, err := g.fields()
				assert.NoError(t, err)
				for _, i := range g.by {
					assert.Equal(t, before[i], guessed[i], "the guess comes true for "+fieldNames[i])
				}
				want := record
				transition(&want.record)
				assert.Equal(t, taken(t, before, st, someTime.UnixMicro()), stored(t, &want), "what is stored")
				exact, err := newStep(place{}, write, known(record, claim.Token), &want)
				assert.NoError(t, err)
				assert.Equal(t, st.index+st.score, exact.index+exact.score, "its place in the index")
			}
		})
	}
}

func TestAFinishOfAnOpenRecordIsNotGuessed(t *testing.T) {
	t.Parallel()
	claim := semel.Claim{Token: semel.NewToken(), Attempt: 3}
	open := someRunning(claim)
	open.record.Open = true
	is, err := open.fields()
	assert.NoError(t, err)
	g := ownClaim(claim)
	guessed, err := g.fields()
	assert.NoError(t, err)
	differs := false
	for _, i := range g.by {
		differs = differs || is[i] != guessed[i]
	}
	assert.True(t, differs, "the guess does not come true")
}

func TestARecordComesBackAsItWas(t *testing.T) {
	t.Parallel()
	r := someRunning(semel.Claim{Scope: "\xff\x00", Key: "{k}", Token: semel.NewToken(), Attempt: 1 << 40})
	r.record.Open, r.record.ReplyKept = true, true
	r.record.Credential = semel.Digest{1}
	r.record.Finished, r.record.Expires = someTime, someTime.Add(time.Hour)
	r.record.Reply = semel.Reply{Status: 201, Header: semel.Header{"A": {"1", "2"}}, Body: []byte{0, 255}}
	f, err := r.fields()
	assert.NoError(t, err)
	var hash []string
	for i, value := range f {
		assert.True(t, value != "" || i == fieldGeneration || i == fieldAllInTx || i == fieldReplyStarted, "the field %s is set", fieldNames[i])
		if value != "" {
			hash = append(hash, fieldNames[i], value)
		}
	}
	got, err := rowOf(append(hash, "of a later version", "1"), someTime.UnixMicro())
	assert.NoError(t, err)
	assert.Equal(t, got, r)
	for _, bad := range [][]string{{"token", "short"}, {"attempt", "one"}, {"lease", "soon"}, {"header", "none"}} {
		_, err := rowOf(bad, 0)
		assert.True(t, err != nil, "%s is refused", bad)
	}
}
