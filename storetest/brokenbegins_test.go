package storetest_test

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

var farAway = time.Unix(math.MaxInt32, 0)

// brokenBegins are faults of Begin and Get.
var brokenBegins = []broken{
	{
		"claim without unique",
		readThenWrite(func(r *semel.Record) bool { return r.State == semel.StateAbsent }),
		[]string{
			"crash point 3: many first Begins of one key/of sixty-four at once one claims, and the others find it busy",
			"crash point 3: many first Begins of one key/of sixty-four that try until they are shown a reply one runs the work",
		},
	},
	{
		"takeover without comparing",
		readThenWrite(func(r *semel.Record) bool { return r.State == semel.StateRunning && r.LeaseLeft() <= 0 }),
		[]string{
			"crash point 4: many takeovers of one lapsed claim/of sixty-four at once one is the next attempt",
			"crash point 4: many takeovers of one lapsed claim/either the owner's Finish is held or one takeover claims, never both",
			"crash point 4: takeovers against a joined commit/either the commit is held and its rows are there, or one takeover claims and they are not",
		},
	},
	{
		"token that claims twice",
		beforeBegin(func(r *semel.Record, p *semel.BeginParams) {
			if r.Token == p.Token {
				r.Token = semel.Token{}
			}
		}),
		[]string{
			"own token/the token of a running claim gets that claim again, its lease renewed (R15)",
			"own token/the token of a released claim is told so and claims nothing (R15)",
			"crash point 1: Begin, and its answer is lost/the same Begin sent many times at once is one claim, which all of them hold",
			"crash point 2: a Begin that executes late/it makes no claim that nobody stands behind, once its retry has claimed and released",
		},
	},
	{
		"replay that prolongs retention",
		afterBegin(func(r *semel.Record, _ *semel.BeginParams, res *semel.BeginResult) bool {
			if res.Outcome == semel.BeginReplay {
				r.Expires = r.Now.Add(30 * 24 * time.Hour)
			}
			return res.Outcome == semel.BeginReplay
		}),
		[]string{
			"a replay/a replay changes nothing, however many come",
			"a replay/a replay, and every other answer but a claim, writes nothing",
		},
	},
	{
		"replay that writes what was there",
		afterBegin(func(_ *semel.Record, _ *semel.BeginParams, res *semel.BeginResult) bool {
			return res.Outcome == semel.BeginReplay
		}),
		[]string{"a replay/a replay, and every other answer but a claim, writes nothing"},
	},
	{
		"time taken before queueing",
		replaceBegin(func(s *reference, _ context.Context, p semel.BeginParams) (res semel.BeginResult, err error) {
			now := s.now()
			err = s.update(p.Scope, p.Key, func(t *tables, r *semel.Record) (changed bool) {
				r.Now = now
				res, changed = begin(t, r, p)
				return changed
			})
			return res, err
		}),
		[]string{"the store's clock/a claim that waited has its whole lease: time is taken when it writes, not when it queues"},
	},
	{
		"keys compared case-blind",
		renaming(func(scope, key string) (string, string) { return strings.ToLower(scope), strings.ToLower(key) }),
		[]string{
			"scope and key compare as bytes (R11)/keys that differ in case are two",
			"scope and key compare as bytes (R11)/scopes that differ in case are two",
		},
	},
	{
		"keys padded with spaces",
		renaming(func(scope, key string) (string, string) {
			return strings.TrimRight(scope, " "), strings.TrimRight(key, " ")
		}),
		[]string{
			"scope and key compare as bytes (R11)/keys that differ in a trailing space are two",
			"scope and key compare as bytes (R11)/scopes that differ in a trailing space are two",
		},
	},
	{
		"keys that end at a NUL byte",
		renaming(func(scope, key string) (string, string) {
			key, _, _ = strings.Cut(key, "\x00")
			return scope, key
		}),
		[]string{
			"scope and key compare as bytes (R11)/a NUL byte ends nothing",
			"scope and key compare as bytes (R11)/a trailing NUL byte counts",
		},
	},
	{
		"scope and key joined by a slash",
		renaming(func(scope, key string) (string, string) { return "", scope + "/" + key }),
		[]string{"scope and key compare as bytes (R11)/a scope and a key are not joined by a slash"},
	},
	{
		"ResumeWithin counted from the last start",
		beforeBegin(func(r *semel.Record, _ *semel.BeginParams) { r.FirstStarted = r.Claimed }),
		[]string{"Resume/ResumeWithin is counted from the first start, not from the last (R8)"},
	},
	{
		"Hold that writes",
		afterBegin(func(r *semel.Record, _ *semel.BeginParams, res *semel.BeginResult) bool {
			lapsed := res.Outcome == semel.BeginUnknown && r.State == semel.StateRunning
			if lapsed {
				r.State = semel.StateUnknown
			}
			return lapsed
		}),
		[]string{"Hold/a lapsed claim answers Unknown, and nothing is written (R16)"},
	},
	{
		"busy before mismatch",
		beforeBegin(func(r *semel.Record, p *semel.BeginParams) {
			if r.State == semel.StateRunning && r.LeaseLeft() > 0 {
				p.Fingerprint = r.Fingerprint
			}
		}),
		[]string{"crash point 13: mismatch/another request is refused, and changes nothing, on a record that is running"},
	},
	{
		"credential ignored",
		beforeBegin(func(r *semel.Record, p *semel.BeginParams) {
			if r.State != semel.StateAbsent && !r.Expired() {
				p.Credential = r.Credential
			}
		}),
		[]string{"crash point 13: mismatch/another credential is refused, and changes nothing, on a record that is done"},
	},
	{
		"policies not compared",
		beforeBegin(func(r *semel.Record, p *semel.BeginParams) { p.Fingerprint.Policy = r.Fingerprint.Policy }),
		[]string{"crash point 13: mismatch/equal meanings under different policies are different requests, on a record that is done"},
	},
	{
		"expired only when swept",
		beforeBegin(func(r *semel.Record, _ *semel.BeginParams) {
			if r.Expired() {
				r.Expires = farAway
			}
		}),
		[]string{
			"retention/once it has ended, swept or not, a new life begins of a record that is done",
			"retention/once it has ended, swept or not, a new life begins of a record that is released",
		},
	},
	{
		"recovery of the first caller",
		func(s *reference) semel.Store {
			first := map[at]time.Duration{}
			return beforeBegin(func(r *semel.Record, p *semel.BeginParams) {
				place := at{p.Scope, p.Key}
				if r.State == semel.StateAbsent {
					first[place] = p.ResumeWithin
				}
				p.ResumeWithin = first[place]
			})(s)
		},
		[]string{"Resume/the recovery that counts is the one of the Begin that asks"},
	},
	{
		"Forever that overflows",
		beforeBegin(func(_ *semel.Record, p *semel.BeginParams) {
			if p.ResumeWithin == semel.Forever {
				p.ResumeWithin = -1
			}
		}),
		[]string{"Resume/Forever has no end"},
	},
	{
		"ResumeWithin ignored",
		beforeBegin(func(_ *semel.Record, p *semel.BeginParams) {
			if p.ResumeWithin > 0 {
				p.ResumeWithin = semel.Forever
			}
		}),
		[]string{
			"Resume/ResumeWithin counts for an unknown record as for a lapsed one",
			"crash point 5: the owner dies after its claim/under Resume its key answers Unknown past ResumeWithin",
		},
	},
	{
		"busy without saying for how long",
		afterBegin(func(_ *semel.Record, _ *semel.BeginParams, res *semel.BeginResult) bool {
			if res.Outcome == semel.BeginBusy {
				res.Record.LeaseEnd = res.Record.Now
			}
			return false
		}),
		[]string{"claim/a second caller finds a live claim busy, with its lease and age"},
	},
	{
		"fingerprints compared whole",
		beforeBegin(func(r *semel.Record, p *semel.BeginParams) {
			if r.State != semel.StateAbsent && p.Fingerprint != r.Fingerprint {
				p.Fingerprint = semel.Fingerprint{Raw: semel.Digest{0xff}, Policy: "none"}
			}
		}),
		[]string{
			"crash point 13: mismatch/equal meanings are one request under one policy, on a record that is running",
			"crash point 13: mismatch/equal raw digests are one request, whatever the policy, on a record that is running",
		},
	},
	{
		"open forgotten at a takeover",
		afterBegin(func(r *semel.Record, p *semel.BeginParams, res *semel.BeginResult) bool {
			if res.Outcome == semel.BeginClaimed && p.AllInTx {
				r.Open = false
			}
			return false
		}),
		[]string{"open/a record stays open through later takeovers"},
	},
	{
		"answers without the store's time",
		afterBegin(func(_ *semel.Record, _ *semel.BeginParams, res *semel.BeginResult) bool {
			res.Record.Now = time.Time{}
			return false
		}),
		[]string{"the store's clock/every answer has the store's time, and none is from before what it tells of"},
	},
	{
		"time of the last write",
		func(s *reference) semel.Store {
			return &faulty{reference: s, get: func(ctx context.Context, scope, key string) (semel.Record, error) {
				rec, err := s.Get(ctx, scope, key)
				rec.Now = rec.Claimed
				return rec, err
			}}
		},
		[]string{"the store's clock/time goes on between two answers as the clock does"},
	},
	{
		"started reply remembered past a release",
		afterBegin(func(r *semel.Record, _ *semel.BeginParams, res *semel.BeginResult) bool {
			if res.From == semel.StateReleased {
				r.ReplyStarted = true
			}
			return false
		}),
		[]string{"claim/a reply that a released attempt had started does not bind the next attempt"},
	},
	{
		"answers that say what was asked",
		afterBegin(func(_ *semel.Record, p *semel.BeginParams, res *semel.BeginResult) bool {
			res.Record.Trace, res.Record.AllInTx = p.Trace, p.AllInTx
			return false
		}),
		[]string{
			"the answer of Begin/it is what Get reads, whoever asks, of a record that is running",
			"the answer of Begin/it is what Get reads, whoever asks, of a record that is lapsed",
			"the answer of Begin/it is what Get reads, whoever asks, of a record that is unknown",
			"the answer of Begin/it is what Get reads, whoever asks, of a record that is released",
			"the answer of Begin/it is what Get reads, whoever asks, of a record that is done",
			"the answer of Begin/it is what Get reads, whoever asks, of a record that is done without a reply",
		},
	},
	{
		"renewals that are not written down",
		func(s *reference) semel.Store {
			return &faulty{reference: s, get: func(ctx context.Context, scope, key string) (semel.Record, error) {
				rec, err := s.Get(ctx, scope, key)
				rec.Renewed = time.Time{}
				return rec, err
			}}
		},
		[]string{"the answer of Begin/a new claim is answered with what Get reads"},
	},
	{
		"expired records out of sight",
		func(s *reference) semel.Store {
			return &faulty{reference: s, get: func(ctx context.Context, scope, key string) (semel.Record, error) {
				rec, err := s.Get(ctx, scope, key)
				if rec.Expired() {
					rec = semel.Record{Now: rec.Now}
				}
				return rec, err
			}}
		},
		[]string{
			"retention/once it has ended, Get reads as it is, until it is swept, a record that is released",
			"retention/once it has ended, Get reads as it is, until it is swept, a record that is done",
			"retention/once it has ended, Get reads as it is, until it is swept, a record that is done without a reply",
		},
	},
}
