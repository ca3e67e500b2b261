package storetest_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

var farAway = time.Unix(math.MaxInt32, 0)

var brokenStores = []broken{
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
		"finish without fencing",
		beforeFinish(func(r *semel.Record, c *semel.Claim, _ *semel.FinishParams) { c.Token, c.Attempt = r.Token, r.Attempt }),
		[]string{
			"Finish/a superseded claim can end nothing, whatever the later one has come to (promise 4)",
			"crash point 7: the owner is frozen, a rival finishes, the owner wakes/all its calls are refused and change nothing",
		},
	},
	{
		"finish fenced by the attempt alone",
		beforeFinish(func(r *semel.Record, c *semel.Claim, _ *semel.FinishParams) {
			if c.Attempt == r.Attempt {
				c.Token = r.Token
			}
		}),
		[]string{"Finish/a claim of an earlier life of the key can end nothing"},
	},
	{
		"release that forgets digests",
		afterFinish(func(r *semel.Record) {
			if r.State == semel.StateReleased && r.Generation == 0 {
				*r = semel.Record{Now: r.Now}
			}
		}),
		[]string{
			"crash point 13: mismatch/another request is refused, and changes nothing, on a record that is released",
			"Finish/a claim ends released, keeping its digests and token (R15)",
		},
	},
	{
		"sweep that does not re-test",
		sweepWithoutRetest,
		[]string{"crash point 12: Sweep/a record that is claimed anew while a sweep runs is not removed by it"},
	},
	{
		"sweep without limit",
		func(s *reference) semel.Store {
			return &faulty{reference: s, sweep: func(ctx context.Context, _ int) (int, error) { return s.Sweep(ctx, math.MaxInt) }}
		},
		[]string{"crash point 12: Sweep/at most limit records go at a time, and in the end all"},
	},
	{
		"unknown records swept",
		sweeping(func(r *semel.Record) bool {
			return r.Expired() || r.State == semel.StateUnknown && r.Now.Sub(r.Finished) > 24*time.Hour
		}),
		[]string{"crash point 12: Sweep/running, lapsed, unknown and reply-started records stay, whatever their age (R25)"},
	},
	{
		"tombstone lost",
		sweeping(func(r *semel.Record) bool { return r.Expired() }),
		[]string{"a settlement/a raised generation outlives retention and sweep, and so does its operation id (M8)"},
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
		"lapsed counted as superseded",
		beforeFinish(func(r *semel.Record, c *semel.Claim, _ *semel.FinishParams) {
			if r.State == semel.StateRunning && r.LeaseLeft() <= 0 {
				c.Attempt = -1
			}
		}),
		[]string{
			"Finish/a claim whose lease has lapsed ends like any other (R16)",
			"crash point 8: the owner is frozen, nobody takes over, the owner wakes/its Finish is accepted, though a rival has seen Unknown (R16)",
		},
	},
	{
		"open ignored",
		beforeFinish(func(r *semel.Record, _ *semel.Claim, _ *semel.FinishParams) { r.Open = false }),
		[]string{"open/released on an open record is stored as unknown, and again as that (M2)"},
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
		"done that is not final",
		beforeFinish(func(r *semel.Record, _ *semel.Claim, p *semel.FinishParams) {
			if r.State == semel.StateDone && p.To == semel.StateUnknown {
				r.State = semel.StateRunning
			}
		}),
		[]string{"Finish/done is final and does not become unknown (M5)"},
	},
	{
		"unknown that is final",
		beforeFinish(func(r *semel.Record, c *semel.Claim, _ *semel.FinishParams) {
			if r.State == semel.StateUnknown {
				c.Attempt = -1
			}
		}),
		[]string{"Finish/unknown may still become done by its own attempt (M5)"},
	},
	{
		"Finish that is refused when it is sent again",
		beforeFinish(func(r *semel.Record, c *semel.Claim, _ *semel.FinishParams) {
			if r.State == semel.StateDone {
				c.Attempt = -1
			}
		}),
		[]string{
			"crash point 9: Finish, and its answer is lost/the same Finish again is held, and the first one's reply and times stay",
			"crash point 9: Finish, and its answer is lost/the same Finish sent many times at once is held every time",
		},
	},
	{
		"empty body taken for none kept",
		afterFinish(func(r *semel.Record) { r.ReplyKept = len(r.Reply.Body) > 0 }),
		[]string{"the kept reply/an empty body is kept as one, which is not a reply lost"},
	},
	{
		"one value for each field",
		afterFinish(func(r *semel.Record) {
			for name, values := range r.Reply.Header {
				r.Reply.Header[name] = values[:1]
			}
		}),
		[]string{"the kept reply/a field keeps its values in their order"},
	},
	{
		"body kept as text",
		afterFinish(func(r *semel.Record) { r.Reply.Body = []byte(strings.ToValidUTF8(string(r.Reply.Body), "\uFFFD")) }),
		[]string{
			"the kept reply/a body may hold any bytes",
			"the kept reply/a body that is not UTF-8 is kept",
		},
	},
	{
		"reply shared with its giver",
		func(s *reference) semel.Store {
			return &faulty{reference: s, finish: func(_ context.Context, c semel.Claim, p semel.FinishParams) (held semel.Held, err error) {
				err = s.update(c.Scope, c.Key, func(_ *tables, r *semel.Record) (changed bool) {
					held, changed = r.Finish(c, p)
					return changed
				})
				return held, err
			}}
		},
		[]string{"a replay/what the caller does to its reply after Finish does not reach the store"},
	},
	{
		"Extend that brings unknown back to running",
		beforeExtend(func(r *semel.Record, _ *semel.ExtendParams) {
			if r.State == semel.StateUnknown {
				r.State = semel.StateRunning
			}
		}),
		[]string{"Extend/on an unknown record it renews nothing, but saves the mark (M5)"},
	},
	{
		"mark of a started reply forgotten",
		beforeExtend(func(_ *semel.Record, p *semel.ExtendParams) { p.ReplyStarted = false }),
		[]string{"Resume/a record whose reply had started is not run again, lapsed or unknown"},
	},
	{
		"settling by attempt alone",
		beforeBegin(func(r *semel.Record, p *semel.BeginParams) {
			if p.Force != nil {
				p.Force = &semel.Force{Attempt: p.Force.Attempt, Token: r.Token, QuietFor: p.Force.QuietFor, Audit: p.Force.Audit}
			}
		}),
		[]string{"a forced Begin/it is refused when the same attempt of another life has come (M7)"},
	},
	{
		"settling at once",
		beforeBegin(func(_ *semel.Record, p *semel.BeginParams) {
			if p.Force != nil {
				f := *p.Force
				f.QuietFor = 0
				p.Force = &f
			}
		}),
		[]string{"a forced Begin/it is refused until the latest claim is QuietFor old on the store's clock (M6)"},
	},
	{
		"settling over a live lease",
		beforeBegin(func(r *semel.Record, p *semel.BeginParams) {
			if p.Force != nil && r.State == semel.StateRunning && r.Token != p.Token {
				r.LeaseEnd = r.Now
			}
		}),
		[]string{
			"a forced Begin/it is refused, and changes nothing, on a record that is running",
			"audit/a refused forced Begin leaves no entry",
		},
	},
	{
		"audit on every repeat",
		replaceBegin(func(s *reference, _ context.Context, p semel.BeginParams) (res semel.BeginResult, err error) {
			err = s.update(p.Scope, p.Key, func(t *tables, r *semel.Record) (changed bool) {
				again := r.Token == p.Token
				res, changed = begin(t, r, p)
				if again && p.Force != nil {
					anew := res
					anew.From = semel.StateUnknown
					t.audit(p.AuditEntry(&anew))
				}
				return changed
			})
			return res, err
		}),
		[]string{"audit/what is sent twice leaves one entry"},
	},
	{
		"audit of the end alone",
		func(s *reference) semel.Store {
			return &faulty{reference: s, audits: func(ctx context.Context, scope, key string) ([]semel.AuditEntry, error) {
				all, err := s.Audits(ctx, scope, key)
				return slices.DeleteFunc(all, func(e semel.AuditEntry) bool { return e.To == semel.StateRunning }), err
			}}
		},
		[]string{"audit/a settlement leaves its forced Begin and its end, in order"},
	},
	{
		"joined rows that outlive a refused commit",
		func(s *reference) semel.Store {
			return &faulty{reference: s, join: func(c semel.Claim) semel.Joint {
				return unfencedJoint{&joint{store: s, claim: c}}
			}}
		},
		[]string{
			"crash point 7: a joined owner wakes after a takeover/its commit is refused, and its business rows are gone (promise 4)",
			"joined mode/a claim that has ended otherwise is refused as final, and its rows are gone",
		},
	},
	{
		"joined reply without its rows",
		func(s *reference) semel.Store {
			return &faulty{reference: s, join: func(c semel.Claim) semel.Joint {
				return apartJoint{&joint{store: s, claim: c}}
			}}
		},
		[]string{"joined mode/reply and business rows are there together"},
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
		"settling what is not there",
		beforeBegin(func(r *semel.Record, p *semel.BeginParams) {
			if r.State == semel.StateAbsent {
				p.Force = nil
			}
		}),
		[]string{"a forced Begin/it is refused on a key without a record, and makes none"},
	},
	{
		"claims held that were never made",
		func(s *reference) semel.Store {
			return &faulty{reference: s, extend: func(ctx context.Context, c semel.Claim, p semel.ExtendParams) (semel.Held, error) {
				held, err := s.Extend(ctx, c, p)
				if held.State == semel.StateAbsent {
					held.Status = semel.HeldYes
				}
				return held, err
			}}
		},
		[]string{
			"claim/a key that nobody used is absent, which is no error",
			"crash point 12: Sweep/a swept claim can neither extend nor end anything",
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
}
