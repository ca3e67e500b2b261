package redisstore

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/semel-dev/semel"
)

// The fields of a record's hash. One that is zero is not there.
const (
	fieldMark = iota
	fieldScope
	fieldKey
	fieldState
	fieldOpen
	fieldGeneration
	fieldOperation
	fieldToken
	fieldAttempt
	fieldRaw
	fieldMeaning
	fieldPolicy
	fieldCredential
	fieldTrace
	fieldAllInTx
	fieldReplyStarted
	fieldReplyKept
	fieldStatus
	fieldHeader
	fieldBody
	fieldTimes // the first of those that hold times
)

// fieldNames are the names in the hash. They are in front of every value of
// every record, so they are short.
var fieldNames = [...]string{
	"mark", "scope", "key", "state", "open", "gen", "op", "token", "attempt", "raw", "meaning", "policy",
	"cred", "trace", "in_tx", "started", "kept", "status", "header", "body",
	"created", "first", "claimed", "renewed", "lease", "finished", "expires",
}

const (
	fieldCount   = len(fieldNames)
	fieldExpires = fieldCount - 1
)

// fields are a record as it is stored.
type fields [fieldCount]string

// row is a record with what the hash adds to it.
type row struct {
	record semel.Record
	// mark is drawn anew by each write. A count would not do: a record that
	// was removed and made again would have it again.
	mark string
	read bool // from the server; else it is a guess
}

// timesOf are the times of r, in the order of their fields.
func timesOf(r *semel.Record) [fieldCount - fieldTimes]*time.Time {
	return [...]*time.Time{&r.Created, &r.FirstStarted, &r.Claimed, &r.Renewed, &r.LeaseEnd, &r.Finished, &r.Expires}
}

// fields returns r as it is stored.
func (r *row) fields() (f fields, err error) {
	rec := &r.record
	var header []byte
	if len(rec.Reply.Header) > 0 {
		if header, err = rec.Reply.Header.MarshalText(); err != nil {
			return f, err
		}
	}
	f = fields{
		fieldMark:         r.mark,
		fieldScope:        rec.Scope,
		fieldKey:          rec.Key,
		fieldState:        number(int64(rec.State)),
		fieldOpen:         flag(rec.Open),
		fieldGeneration:   number(rec.Generation),
		fieldOperation:    digest(rec.OperationID[:]),
		fieldToken:        digest(rec.Token[:]),
		fieldAttempt:      number(rec.Attempt),
		fieldRaw:          digest(rec.Fingerprint.Raw[:]),
		fieldMeaning:      digest(rec.Fingerprint.Meaning[:]),
		fieldPolicy:       rec.Fingerprint.Policy,
		fieldCredential:   digest(rec.Credential[:]),
		fieldTrace:        rec.Trace,
		fieldAllInTx:      flag(rec.AllInTx),
		fieldReplyStarted: flag(rec.ReplyStarted),
		fieldReplyKept:    flag(rec.ReplyKept),
		fieldStatus:       number(int64(rec.Reply.Status)),
		fieldHeader:       string(header),
		fieldBody:         string(rec.Reply.Body),
	}
	for i, t := range timesOf(rec) {
		if !t.IsZero() {
			f[fieldTimes+i] = number(t.UnixMicro())
		}
	}
	return f, nil
}

// rowOf reads the names and values of a hash, at the server's time now.
func rowOf(hash []string, now int64) (row, error) {
	r := row{read: true}
	rec := &r.record
	rec.Now = time.UnixMicro(now).UTC()
	for i := 0; i+1 < len(hash); i += 2 {
		if err := r.set(hash[i], hash[i+1]); err != nil {
			return r, fmt.Errorf("field %s of a record: %w", hash[i], err)
		}
	}
	return r, nil
}

// set takes one field up.
func (r *row) set(name, value string) error {
	rec := &r.record
	switch name {
	case fieldNames[fieldMark]:
		r.mark = value
	case fieldNames[fieldScope]:
		rec.Scope = value
	case fieldNames[fieldKey]:
		rec.Key = value
	case fieldNames[fieldState]:
		return parse(value, &rec.State)
	case fieldNames[fieldOpen]:
		rec.Open = true
	case fieldNames[fieldGeneration]:
		return parse(value, &rec.Generation)
	case fieldNames[fieldOperation]:
		return fill(rec.OperationID[:], value)
	case fieldNames[fieldToken]:
		return fill(rec.Token[:], value)
	case fieldNames[fieldAttempt]:
		return parse(value, &rec.Attempt)
	case fieldNames[fieldRaw]:
		return fill(rec.Fingerprint.Raw[:], value)
	case fieldNames[fieldMeaning]:
		return fill(rec.Fingerprint.Meaning[:], value)
	case fieldNames[fieldPolicy]:
		rec.Fingerprint.Policy = value
	case fieldNames[fieldCredential]:
		return fill(rec.Credential[:], value)
	case fieldNames[fieldTrace]:
		rec.Trace = value
	case fieldNames[fieldAllInTx]:
		rec.AllInTx = true
	case fieldNames[fieldReplyStarted]:
		rec.ReplyStarted = true
	case fieldNames[fieldReplyKept]:
		rec.ReplyKept = true
	case fieldNames[fieldStatus]:
		return parse(value, &rec.Reply.Status)
	case fieldNames[fieldHeader]:
		return rec.Reply.Header.UnmarshalText([]byte(value))
	case fieldNames[fieldBody]:
		rec.Reply.Body = []byte(value)
	default:
		return r.setTime(name, value)
	}
	return nil
}

func (r *row) setTime(name, value string) error {
	for i, t := range timesOf(&r.record) {
		if name != fieldNames[fieldTimes+i] {
			continue
		}
		var micros int64
		if err := parse(value, &micros); err != nil {
			return err
		}
		*t = time.UnixMicro(micros).UTC()
	}
	return nil // of a later version of Semel
}

// shift moves the times that a transition has set, since the read before it,
// to where the server has set them: it wrote when its clock stood at now.
func (r *row) shift(read *row, now int64) {
	late := time.UnixMicro(now).Sub(read.record.Now)
	before := timesOf(&read.record)
	for i, t := range timesOf(&r.record) {
		if !t.Equal(*before[i]) && !t.IsZero() {
			*t = time.UnixMicro(t.Add(late).UnixMicro()).UTC()
		}
	}
	r.record.Now = time.UnixMicro(now).UTC()
}

func newMark() string { return strconv.FormatUint(rand.Uint64(), 36) }

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func flag(set bool) string {
	if set {
		return "1"
	}
	return ""
}

// digest returns b as it is, or nothing if it is all zero.
func digest(b []byte) string {
	for _, c := range b {
		if c != 0 {
			return string(b)
		}
	}
	return ""
}

func parse[N ~int | ~int64 | ~uint8](value string, to *N) error {
	n, err := strconv.ParseInt(value, 10, 64)
	*to = N(n)
	return err
}

func fill(to []byte, value string) error {
	if len(value) != len(to) {
		return fmt.Errorf("it has %d bytes, want %d", len(value), len(to))
	}
	copy(to, value)
	return nil
}
