package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/semel-dev/semel"
)

// keyView is a record as JSON shows it. Members are added and never changed.
type keyView struct {
	Operation   string     `json:"operation"`
	Scope       string     `json:"scope"`
	ScopeBase64 string     `json:"scopeBase64,omitempty"` // in place of a scope that is no UTF-8
	KeyDigest   string     `json:"keyDigest"`
	Key         string     `json:"key,omitempty"` // with --show-keys
	KeyBase64   string     `json:"keyBase64,omitempty"`
	State       string     `json:"state"`
	Lapsed      bool       `json:"lapsed"` // running, and its lease has run out
	Attempt     int64      `json:"attempt"`
	Generation  int64      `json:"generation"`
	Open        bool       `json:"open"`
	AgeSeconds  float64    `json:"ageSeconds"` // since the first start, on the store's clock
	First       *time.Time `json:"firstStarted,omitempty"`
	Claimed     *time.Time `json:"claimed,omitempty"`
	LeaseEnd    *time.Time `json:"leaseEnd,omitempty"`
	Finished    *time.Time `json:"finished,omitempty"`
	Expires     *time.Time `json:"expires,omitempty"`
	Started     bool       `json:"replyStarted"`
	Kept        bool       `json:"replyKept"`
	Status      int        `json:"status,omitempty"`
}

// digestLength is that of the digests of keys in the logs of semelhttp.
const digestLength = 12

func keyDigest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])[:digestLength]
}

func viewOf(r *semel.Record, showKeys bool) keyView {
	v := keyView{
		Operation:  r.OperationID.String(),
		KeyDigest:  keyDigest(r.Key),
		State:      r.State.String(),
		Lapsed:     lapsed(r),
		Attempt:    r.Attempt,
		Generation: r.Generation,
		Open:       r.Open,
		AgeSeconds: age(r).Seconds(),
		First:      moment(r.FirstStarted),
		Claimed:    moment(r.Claimed),
		LeaseEnd:   moment(r.LeaseEnd),
		Finished:   moment(r.Finished),
		Expires:    moment(r.Expires),
		Started:    r.ReplyStarted,
		Kept:       r.ReplyKept,
		Status:     r.Reply.Status,
	}
	v.Scope, v.ScopeBase64 = textOrBase64(r.Scope)
	if showKeys {
		v.Key, v.KeyBase64 = textOrBase64(r.Key)
	}
	return v
}

func textOrBase64(s string) (text, encoded string) {
	if utf8.ValidString(s) {
		return s, ""
	}
	return "", base64.StdEncoding.EncodeToString([]byte(s))
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func lapsed(r *semel.Record) bool { return r.State == semel.StateRunning && r.LeaseLeft() <= 0 }

// age is how long ago the operation was first started.
func age(r *semel.Record) time.Duration {
	if r.FirstStarted.IsZero() {
		return 0
	}
	return max(r.Now.Sub(r.FirstStarted), 0)
}

// stateLapsed is what a running record whose lease has run out is called.
const stateLapsed = "lapsed"

// stateOf is the state in a word, with what the lease says.
func stateOf(r *semel.Record) string {
	if lapsed(r) {
		return stateLapsed
	}
	return r.State.String()
}

// replyOf says what a repeat would be answered.
func replyOf(r *semel.Record) string {
	switch {
	case r.State != semel.StateDone:
		return "-"
	case !r.ReplyKept && r.Reply.Status == 0:
		return "not kept"
	case !r.ReplyKept:
		return strconv.Itoa(r.Reply.Status) + ", not kept"
	case r.Reply.Status == 0:
		return "kept"
	}
	return strconv.Itoa(r.Reply.Status)
}

// printKeys prints records as a table.
func printKeys(w io.Writer, records []semel.Record, showKeys bool) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "OPERATION\tSTATE\tAGE\tATTEMPT\tREPLY\tSCOPE\tKEY")
	for i := range records {
		r := &records[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n",
			r.OperationID, stateOf(r), short(age(r)), r.Attempt, replyOf(r), visible(r.Scope), keyName(r, showKeys))
	}
	table.Flush() //nolint:errcheck // a reader that has left cannot be told so.
}

// keyName is the key, or the beginning of its digest, which logs have too.
func keyName(r *semel.Record, showKeys bool) string {
	if showKeys {
		return visible(r.Key)
	}
	return "sha256:" + keyDigest(r.Key)
}

// asTyped is a duration as one types it: 1h, where its String is 1h0m0s.
func asTyped(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// short is a duration in its two greatest units.
func short(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < day:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d/day), int(d.Hours())%24)
}

// visible is s as it may be printed: in quotes if there is anything in it but
// plain signs, so that nothing that a client sent moves a terminal's cursor or
// looks like two columns.
func visible(s string) string {
	plain := func(r rune) bool {
		return r > ' ' && r != '"' && r != '\\' && r != utf8.RuneError && strconv.IsPrint(r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

// printVisibleJSON prints v as one line of JSON whose texts hold no control
// signs: encoding/json escapes those of ASCII alone.
func printVisibleJSON(w io.Writer, v any) {
	var line bytes.Buffer
	printJSON(&line, v)
	for _, r := range line.String() {
		if r == '\n' || strconv.IsPrint(r) {
			fmt.Fprintf(w, "%c", r)
			continue
		}
		fmt.Fprintf(w, `\u%04x`, r)
	}
}

// auditView is a line of the audit log as JSON shows it.
type auditView struct {
	At       time.Time `json:"at"`
	Attempt  int64     `json:"attempt"`
	What     string    `json:"what"`
	Actor    string    `json:"actor"`
	Reason   string    `json:"reason"`
	Override bool      `json:"override"`
}

func auditsOf(entries []semel.AuditEntry) []auditView {
	all := make([]auditView, 0, len(entries))
	for _, e := range entries {
		all = append(all, auditView{
			At: e.At.UTC(), Attempt: e.Attempt, What: whatWasDone(e.To),
			Actor: e.Audit.Actor, Reason: e.Audit.Reason, Override: e.Audit.Override,
		})
	}
	return all
}

// whatWasDone is what a line of the audit log says.
func whatWasDone(to semel.State) string {
	switch to {
	case semel.StateRunning:
		return "taken over"
	case semel.StateDone:
		return "settled done"
	case semel.StateReleased:
		return "settled not applied"
	case semel.StateAbsent:
		return "reply erased"
	}
	return "settled " + to.String()
}

// fullView is what "semel keys show" prints as JSON.
type fullView struct {
	keyView

	Audit []auditView `json:"audit"`
}

// printRecord prints one record with all that an operator may want to know.
func printRecord(w io.Writer, r *semel.Record, audits []semel.AuditEntry, showKeys bool) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	at := func(name string, t time.Time) {
		if !t.IsZero() {
			line(name, "%s (%s)", t.UTC().Format(time.RFC3339), relative(r.Now.Sub(t)))
		}
	}
	line("operation", "%s", r.OperationID)
	line("scope", "%s", visible(r.Scope))
	line("key", "%s", keyName(r, showKeys))
	line("state", "%s", stateOf(r))
	line("attempt", "%d, generation %d", r.Attempt, r.Generation)
	line("reply", "%s", replyOf(r))
	at("first started", r.FirstStarted)
	at("claimed", r.Claimed)
	switch {
	case lapsed(r):
		at("lease ended", r.LeaseEnd)
	case r.State == semel.StateRunning: // what has ended is nobody's
		at("lease ends", r.LeaseEnd)
	}
	at("finished", r.Finished)
	at("expires", r.Expires)
	if r.Open {
		line("open", "an earlier attempt has no known end")
	}
	if r.ReplyStarted {
		line("reply started", "bytes of it went out: it is not run again")
	}
	for _, e := range audits {
		note := ""
		if e.Audit.Override {
			note = ", without the wait"
		}
		line("audit", "%s %s%s, by %s: %s", e.At.UTC().Format(time.RFC3339), whatWasDone(e.To), note, visible(e.Audit.Actor), strconv.Quote(e.Audit.Reason))
	}
	table.Flush() //nolint:errcheck // a reader that has left cannot be told so.
}

// relative says how long ago something was, or how long it takes.
func relative(ago time.Duration) string {
	if ago < 0 {
		return "in " + short(-ago)
	}
	return short(ago) + " ago"
}
