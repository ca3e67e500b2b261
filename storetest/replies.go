package storetest

import (
	"bytes"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var replyChapters = []chapter{
	{name: "the kept reply", rules: replyRules()},
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
		rules = append(rules, rule{name: name, test: func(s *subject) { replyComesBack(s, reply) }})
	}
	return rules
}

func replyComesBack(s *subject, reply semel.Reply) {
	s.end(s.claim(params("key")), toDoneWith(reply))
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
