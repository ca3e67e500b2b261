package storetest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var replyChapters = []chapter{
	{name: "the kept reply", rules: replyRules()},
	{name: "a reply that cannot be saved", rules: unsavableRules()},
	{name: "a replay", rules: []rule{
		{name: "a replay changes nothing, however many come", test: replayChangesNothing},
		{name: "a replay, and every other answer but a claim, writes nothing", needs: WriteCounting, test: answersWriteNothing},
		{name: "what the caller does to its reply after Finish does not reach the store", test: replyIsCopied},
	}},
}

// replyRules: what comes back is what was saved, byte for byte.
func replyRules() []rule {
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	// Header values may hold any byte but line breaks (RFC 9110 section 5.5).
	anyValue := strings.NewReplacer("\n", "", "\r", "").Replace(string(everyByte))
	var rules []rule
	for name, reply := range map[string]semel.Reply{
		"a body may hold any bytes":                               {Status: 200, Body: everyByte},
		"an empty body is kept as one, which is not a reply lost": {Status: 204},
		"a reply without status is kept":                          {Body: []byte("of no HTTP")},
		"a body of one mebibyte is kept":                          {Status: 200, Body: bytes.Repeat(everyByte, 1<<20/len(everyByte))},
		"a body that is not UTF-8 is kept":                        {Status: 200, Body: []byte("\xff\xfe\x00\xc3")},
		"a field keeps its values in their order": {
			Status: 200, Header: semel.Header{"Link": {"<b>", "<a>", "<b>"}, "Vary": {"Accept"}},
		},
		"a field value may be empty, spaced or of any bytes": {
			Status: 200, Header: semel.Header{"X-Empty": {""}, "X-Spaced": {" a: b "}, "X-Bytes": {anyValue}},
		},
	} {
		rules = append(rules, rule{name: name, test: func(s *subject) { replyComesBack(s, reply, reply) }})
	}
	return append(rules, rule{name: "a line break in a field value comes back as a space", test: lineBreaks})
}

// lineBreaks: a value with one would be read back as another field, by the
// store or by the client. What net/http sends in its place is saved.
func lineBreaks(s *subject) {
	saved := semel.Reply{Status: 200, Header: semel.Header{
		"X-Note":  {"one\ntwo", "\r\n", "three\rfour\n"},
		"X-Smart": {"x\nX-Injected: yes"},
	}}
	replyComesBack(s, saved, semel.Reply{Status: 200, Header: semel.Header{
		"X-Note":  {"one two", "  ", "three four "},
		"X-Smart": {"x X-Injected: yes"},
	}})
}

// unsavableRules are on field names that could not be told from a name and a
// value, see [semel.Header].
func unsavableRules() []rule {
	var rules []rule
	for what, name := range map[string]string{
		"no name": "", "a colon in its name": "Bad:Name", "a line break in its name": "Bad\nName", "a carriage return in its name": "Bad\rName",
	} {
		end := toDoneWith(semel.Reply{Status: 200, Header: semel.Header{"Good": {"x"}, name: {"x"}}})
		rules = append(
			rules,
			rule{
				name: "Finish with a field that has " + what + " is an error, changes nothing, and is held when it is sent again without",
				test: func(s *subject) { unsavableFinish(s, end) },
			},
			rule{
				name:  "a joined commit with a field that has " + what + " is an error, leaves no rows, and the claim runs on",
				needs: Joining,
				test:  func(s *subject) { unsavableCommit(s, end) },
			},
			rule{
				name:  "an atomic commit with a field that has " + what + " is an error and leaves nothing",
				needs: atomicMode,
				test:  func(s *subject) { unsavableAtomic(s, end) },
			},
		)
	}
	return append(
		rules,
		rule{name: "it fails no Finish that is sent beside it", test: unsavableBeside},
		rule{name: "the header of a reply that is not to be kept does not matter", test: unsavableNotKept},
	)
}

func unsavableFinish(s *subject, end semel.FinishParams) {
	fresh, unknown := s.claim(params("fresh")), s.claim(params("unknown"))
	s.end(unknown, toUnknown)
	for _, rec := range []semel.Record{fresh, unknown} {
		before := s.get(rec.Key)
		_, err := s.store.Finish(s.Context(), rec.Claim(), end)
		assert.True(s, err != nil, "Finish of the %s claim is an error", rec.Key)
		s.unchanged(before)
		s.end(rec, toDone)
		res := s.want(params(rec.Key), semel.BeginReplay)
		assert.Equal(s, normal(res.Record.Reply), normal(toDone.Reply), "reply")
	}
}

func unsavableCommit(s *subject, end semel.FinishParams) {
	rec := s.claim(params("key"))
	before := s.get("key")
	joint := s.join(rec)
	_, err := joint.Commit(s.Context(), end)
	assert.True(s, err != nil, "Commit is an error")
	assert.NoError(s, joint.Rollback(), "Rollback")
	s.wantRows(0)
	s.unchanged(before)
	wantHeld(s, s.commit(s.join(rec), toDone), semel.HeldYes, semel.StateDone)
	s.wantRows(1)
}

func unsavableAtomic(s *subject, end semel.FinishParams) {
	for _, commit := range []func(semel.AtomicJoint) (semel.Held, error){
		func(j semel.AtomicJoint) (semel.Held, error) { return j.Commit(s.Context(), end) },
		func(j semel.AtomicJoint) (semel.Held, error) { return j.CommitReply(s.Context(), end) },
	} {
		_, joint := s.claimAtomic(params("key"))
		_, err := commit(joint)
		assert.True(s, err != nil, "the commit is an error")
		assert.NoError(s, joint.Rollback(), "Rollback")
		assert.Equal(s, s.get("key").State, semel.StateAbsent, "state")
		s.wantRows(0)
	}
	_, joint := s.claimAtomic(params("key"))
	wantHeld(s, s.commit(joint, toDone), semel.HeldYes, semel.StateDone)
	s.wantRows(1)
}

// unsavableBeside is for stores that send several calls at once.
func unsavableBeside(s *subject) {
	bad := toDoneWith(semel.Reply{Status: 200, Header: semel.Header{"Bad:Name": {"x"}}})
	claims := make([]semel.Record, racers)
	for i := range claims {
		claims[i] = s.claim(params(fmt.Sprint(i)))
	}
	refused := atOnce(s, racers, func(i int) (bool, error) {
		if i%4 > 0 {
			held, err := s.store.Finish(s.Context(), claims[i].Claim(), toDone)
			return held.Status != semel.HeldYes, err
		}
		_, err := s.store.Finish(s.Context(), claims[i].Claim(), bad)
		return err != nil, nil
	})
	for i := range claims {
		assert.Equal(s, refused[i], i%4 == 0, "Finish %d is refused", i)
		want := map[bool]semel.State{true: semel.StateRunning, false: semel.StateDone}[refused[i]]
		assert.Equal(s, s.get(claims[i].Key).State, want, "state of %d", i)
	}
}

func unsavableNotKept(s *subject) {
	p := toDoneNoRep
	p.Reply.Header = semel.Header{"Bad:Name": {"x"}}
	s.end(s.claim(params("key")), p)
	assert.Equal(s, normal(s.get("key").Reply), semel.Reply{Status: p.Reply.Status}, "reply")
}

// replyComesBack saves one reply and checks that every reader gets the other.
func replyComesBack(s *subject, saved, reply semel.Reply) {
	s.Helper()
	s.end(s.claim(params("key")), toDoneWith(saved))
	res := s.want(params("key"), semel.BeginReplay)
	for where, rec := range map[string]semel.Record{"the answer of Begin": res.Record, "Get": s.get("key")} {
		got := normal(rec.Reply)
		assert.Equal(s, rec.ReplyKept, true, "reply kept, in %s", where)
		assert.Equal(s, got.Status, reply.Status, "status, in %s", where)
		assert.Equal(s, got.Header, normal(reply).Header, "header, in %s", where)
		if !bytes.Equal(got.Body, reply.Body) {
			s.Errorf("body, in %s: got %d bytes, want the %d bytes that were saved", where, len(got.Body), len(reply.Body))
		}
	}
}

func replayChangesNothing(s *subject) {
	s.end(s.claim(params("key")), toDone)
	before := s.get("key")
	for range 5 {
		s.advance(retention / 10)
		s.want(params("key"), semel.BeginReplay)
		s.want(resuming("key"), semel.BeginReplay)
	}
	s.unchanged(before)
	s.advance(retention/2 + slack)
	s.claim(params("key"))
}

func answersWriteNothing(s *subject) {
	s.end(s.claim(params("done")), toDone)
	s.end(s.claim(params("done without a reply")), toDoneNoRep)
	s.end(s.claim(params("unknown")), toUnknown)
	s.claim(params("lapsed"))
	s.lapse()
	s.claim(params("busy"))
	before := s.h.Writes(s.T, s.store)
	for range 3 {
		s.want(params("done"), semel.BeginReplay)
		s.want(params("done without a reply"), semel.BeginReplay)
		s.want(params("unknown"), semel.BeginUnknown)
		s.want(params("lapsed"), semel.BeginUnknown)
		s.want(params("busy"), semel.BeginBusy)
		p := params("done")
		p.Credential = semel.Digest{1}
		s.want(p, semel.BeginMismatch)
		s.get("done")
		s.get("absent")
	}
	assert.Equal(s, s.h.Writes(s.T, s.store)-before, 0, "writes")
	s.claim(params("new"))
	assert.True(s, s.h.Writes(s.T, s.store) > before, "Harness.Writes counts the write of a claim")
}

func replyIsCopied(s *subject) {
	body := []byte("as saved")
	header := semel.Header{"X-Kept": {"as saved"}}
	s.end(s.claim(params("key")), toDoneWith(semel.Reply{Status: 200, Header: header, Body: body}))
	copy(body, "changed!")
	header["X-Kept"][0] = "changed"
	header["X-New"] = []string{"new"}
	got := s.get("key").Reply
	assert.Equal(s, string(got.Body), "as saved", "body")
	assert.Equal(s, got.Header, semel.Header{"X-Kept": {"as saved"}}, "header")
}
