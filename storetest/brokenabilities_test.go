package storetest_test

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// lists is the fault of a store whose List is f.
type lists struct {
	*reference

	f func(s *reference, ctx context.Context, p semel.ListParams) ([]semel.Record, error)
}

func (l lists) List(ctx context.Context, p semel.ListParams) ([]semel.Record, error) {
	return l.f(l.reference, ctx, p)
}

func (l lists) Unwrap() semel.Store { return l.reference }

func listing(f func(s *reference, ctx context.Context, p semel.ListParams) ([]semel.Record, error)) func(*reference) semel.Store {
	return func(s *reference) semel.Store { return lists{s, f} }
}

// asking is the fault of a store whose List asks for something else.
func asking(change func(p *semel.ListParams)) func(*reference) semel.Store {
	return listing(func(s *reference, ctx context.Context, p semel.ListParams) ([]semel.Record, error) {
		change(&p)
		return s.List(ctx, p)
	})
}

// listingRows is the fault of a store whose List looks at rows in place of
// records: those that have says so of, as change has made them, in the order
// of less.
func listingRows(has func(p *semel.ListParams, r *semel.Record) bool, change func(r *semel.Record), compare func(a, b *semel.Record) int) func(*reference) semel.Store {
	return listing(func(s *reference, _ context.Context, p semel.ListParams) (found []semel.Record, err error) {
		err = s.medium.borrow(func(t *tables) bool {
			for _, r := range t.Records {
				if r.Now = s.now(); has(&p, &r) {
					change(&r)
					found = append(found, r)
				}
			}
			return false
		})
		slices.SortFunc(found, func(a, b semel.Record) int { return compare(&a, &b) })
		return found[:min(len(found), max(p.Limit, 0))], err
	})
}

func withoutReply(r *semel.Record) { r.Reply = semel.Reply{Status: r.Reply.Status} }

func byPosition(a, b *semel.Record) int { return comparePositions(a.Position(), b.Position()) }

// finds is the fault of a store whose ByOperation is f.
type finds struct {
	*reference

	f func(s *reference, ctx context.Context, id semel.OperationID) (semel.Record, error)
}

func (o finds) ByOperation(ctx context.Context, id semel.OperationID) (semel.Record, error) {
	return o.f(o.reference, ctx, id)
}

func (o finds) Unwrap() semel.Store { return o.reference }

// erases is the fault of a store that applies something else than Record.Erase.
type erases struct {
	*reference

	apply func(t *tables, r *semel.Record, a semel.Audit) (semel.EraseResult, bool)
}

func (e erases) Erase(_ context.Context, scope, key string, a semel.Audit) (res semel.EraseResult, err error) {
	err = e.update(scope, key, func(t *tables, r *semel.Record) (changed bool) {
		res, changed = e.apply(t, r, a)
		return changed
	})
	return res, err
}

func (e erases) Unwrap() semel.Store { return e.reference }

// erasing is that fault where change comes before or after Record.Erase.
func erasing(before, after func(r *semel.Record)) func(*reference) semel.Store {
	return func(s *reference) semel.Store {
		return erases{s, func(t *tables, r *semel.Record, a semel.Audit) (semel.EraseResult, bool) {
			before(r)
			res, changed := r.Erase()
			if changed {
				after(r)
			}
			t.audit(res.AuditEntry(a))
			return res, changed
		}}
	}
}

func nothing(*semel.Record) {}

// eraseReadBefore reads first, and writes what it has made of that.
type eraseReadBefore struct{ *reference }

func (e eraseReadBefore) Erase(ctx context.Context, scope, key string, a semel.Audit) (res semel.EraseResult, err error) {
	read, err := e.Get(ctx, scope, key)
	if err != nil {
		return res, err
	}
	pause()
	res, changed := read.Erase()
	return res, e.update(scope, key, func(t *tables, r *semel.Record) bool {
		if changed {
			*r = read
			t.audit(res.AuditEntry(a))
		}
		return changed
	})
}

func (e eraseReadBefore) Unwrap() semel.Store { return e.reference }

// schedules is the fault of a store with a schedule of its own.
type schedules struct {
	*reference

	turn func(s *reference, d time.Duration) (bool, error)
	lag  func(s *reference) (time.Duration, error)
}

func (c schedules) SweepTurn(ctx context.Context, d time.Duration) (bool, error) {
	if c.turn == nil {
		return c.reference.SweepTurn(ctx, d)
	}
	return c.turn(c.reference, d)
}

func (c schedules) SweepLag(ctx context.Context) (time.Duration, error) {
	if c.lag == nil {
		return c.reference.SweepLag(ctx)
	}
	return c.lag(c.reference)
}

func (c schedules) Unwrap() semel.Store { return c.reference }

// lagging is the fault of a store whose lag is the greatest of what age says.
func lagging(age func(r *semel.Record) time.Duration) func(*reference) semel.Store {
	return func(s *reference) semel.Store {
		return schedules{reference: s, lag: func(s *reference) (lag time.Duration, err error) {
			err = s.medium.borrow(func(t *tables) bool {
				for _, r := range t.Records {
					r.Now = s.now()
					lag = max(lag, age(&r))
				}
				return false
			})
			return lag, err
		}}
	}
}

// turnReadBefore looks at the last turn first, and takes one then.
func turnReadBefore(s *reference, d time.Duration) (mine bool, err error) {
	err = s.medium.borrow(func(t *tables) bool {
		mine = s.now().Sub(t.Swept) >= d
		return false
	})
	if err != nil || !mine {
		return false, err
	}
	pause()
	return true, s.medium.borrow(func(t *tables) bool { t.Swept = s.now(); return true })
}

var brokenAbilities = []broken{
	{
		"list with replies",
		listingRows(asksFor, nothing, byPosition),
		[]string{"List/it finds, with all but the reply, a record that is done"},
	},
	{
		"list without states",
		asking(func(p *semel.ListParams) { p.States = nil }),
		[]string{"List/it finds those of the states asked for alone"},
	},
	{
		"list of one state",
		asking(func(p *semel.ListParams) { p.States = p.States[:min(len(p.States), 1)] }),
		[]string{
			"List/it finds those of the states asked for alone",
			"List/what is stuck is found among what is not",
		},
	},
	{
		"list of what the statuses are not",
		listingRows(asksFor, func(r *semel.Record) { r.Reply = semel.Reply{} }, byPosition),
		[]string{"List/it finds, with all but the reply, a record that is done without a reply"},
	},
	{
		"list of claims without their owner",
		listingRows(asksFor, func(r *semel.Record) { withoutReply(r); r.Token = semel.Token{} }, byPosition),
		[]string{
			"List/it finds, with all but the reply, a record that is running",
			"List/it finds, with all but the reply, a record that is lapsed",
			"List/it finds, with all but the reply, a record that is unknown",
			"List/it finds, with all but the reply, a record that is released",
		},
	},
	{
		"list of all scopes",
		asking(func(p *semel.ListParams) { p.Scope = "" }),
		[]string{"List/it finds those of the scope asked for alone, as bytes (R11)"},
	},
	{
		"list of scopes as text",
		listingRows(func(p *semel.ListParams, r *semel.Record) bool {
			same := strings.EqualFold(strings.TrimRight(p.Scope, " "), strings.TrimRight(r.Scope, " "))
			if q := *p; p.Scope != "" && same {
				q.Scope = ""
				return asksFor(&q, r)
			}
			return asksFor(p, r)
		}, withoutReply, byPosition),
		[]string{"List/it finds those of the scope asked for alone, as bytes (R11)"},
	},
	{
		"list by the latest attempt",
		listingRows(asksFor, withoutReply, func(a, b *semel.Record) int { return a.Claimed.Compare(b.Claimed) }),
		[]string{"List/the oldest come first, by the first start"},
	},
	{
		"list of any age",
		asking(func(p *semel.ListParams) { p.OlderThan = 0 }),
		[]string{"List/it leaves out what is younger than asked for, on the store's clock"},
	},
	{
		"pages by time alone",
		listingRows(func(p *semel.ListParams, r *semel.Record) bool {
			q := *p
			q.After = semel.Position{}
			return asksFor(&q, r) && r.FirstStarted.After(p.After.FirstStarted)
		}, withoutReply, byPosition),
		[]string{"List/pages meet each record once, whatever its scope and key"},
	},
	{
		"list without limit",
		asking(func(p *semel.ListParams) { p.Limit = 1000 }),
		[]string{"List/a page has at most limit records, and none without a limit"},
	},
	{
		"list of what is expired",
		listingRows(func(p *semel.ListParams, r *semel.Record) bool {
			q := *r
			q.Expires = farAway
			return asksFor(p, &q)
		}, withoutReply, byPosition),
		[]string{"List/what is expired is not listed, swept or not"},
	},
	{
		"list of tombstones",
		listingRows(func(p *semel.ListParams, r *semel.Record) bool {
			return r.State == semel.StateAbsent || asksFor(p, r)
		}, withoutReply, byPosition),
		[]string{"List/a tombstone is not listed"},
	},
	{
		"operation found without its reply",
		func(s *reference) semel.Store {
			return finds{s, func(s *reference, ctx context.Context, id semel.OperationID) (semel.Record, error) {
				rec, err := s.ByOperation(ctx, id)
				rec.Reply, rec.Trace, rec.Token = semel.Reply{}, "", semel.Token{}
				return rec, err
			}}
		},
		[]string{
			"ByOperation/it reads what Get reads of a record that is running",
			"ByOperation/it reads what Get reads of a record that is lapsed",
			"ByOperation/it reads what Get reads of a record that is unknown",
			"ByOperation/it reads what Get reads of a record that is released",
			"ByOperation/it reads what Get reads of a record that is done",
			"ByOperation/it reads what Get reads of a record that is done without a reply",
		},
	},
	{
		"operation that is expired out of sight",
		func(s *reference) semel.Store {
			return finds{s, func(s *reference, ctx context.Context, id semel.OperationID) (semel.Record, error) {
				rec, err := s.ByOperation(ctx, id)
				if rec.Expired() {
					rec = semel.Record{Now: rec.Now}
				}
				return rec, err
			}}
		},
		[]string{"ByOperation/an expired record is found until it is swept"},
	},
	{
		"operation that is any",
		func(s *reference) semel.Store {
			return finds{s, func(s *reference, _ context.Context, id semel.OperationID) (rec semel.Record, err error) {
				err = s.medium.borrow(func(t *tables) bool {
					for _, r := range t.Records {
						if rec.Key == "" || r.OperationID == id {
							rec = r
						}
					}
					rec.Now = s.now()
					return false
				})
				return rec, err
			}}
		},
		[]string{"ByOperation/an operation that nobody began is absent"},
	},
	{
		"operation by the id of the key's first life",
		func(s *reference) semel.Store {
			return finds{s, func(s *reference, _ context.Context, id semel.OperationID) (rec semel.Record, err error) {
				err = s.medium.borrow(func(t *tables) bool {
					for _, r := range t.Records {
						if semel.NewOperationID(semel.DefaultService, r.Scope, r.Key, 0) == id {
							rec = r
						}
					}
					rec.Now = s.now()
					return false
				})
				return rec, err
			}}
		},
		[]string{"ByOperation/after start over the new id finds the record, and the old one none"},
	},
	{
		"erase of what is not done",
		erasing(func(r *semel.Record) {
			if r.State == semel.StateRunning || r.State == semel.StateUnknown {
				r.State, r.ReplyKept = semel.StateDone, true
			}
		}, nothing),
		[]string{
			"Erase/it is refused, and changes nothing, on a record that is running",
			"Erase/it is refused, and changes nothing, on a record that is lapsed",
			"Erase/it is refused, and changes nothing, on a record that is unknown",
			"Erase/a record that is claimed anew meanwhile is left to its claim",
		},
	},
	{
		"erase of what has no reply",
		erasing(func(r *semel.Record) {
			if r.State == semel.StateDone || r.State == semel.StateReleased {
				r.State, r.ReplyKept = semel.StateDone, true
			}
		}, nothing),
		[]string{
			"Erase/there is nothing to do, and nothing changes, on a record that is released",
			"Erase/there is nothing to do, and nothing changes, on a record that is done without a reply",
			"Erase/one line of the audit log is left by each reply that goes, however often it is erased",
		},
	},
	{
		"erase that makes records",
		erasing(func(r *semel.Record) {
			if r.State == semel.StateAbsent {
				r.State, r.ReplyKept, r.Attempt, r.Expires = semel.StateDone, true, 1, farAway
			}
		}, nothing),
		[]string{"Erase/a key without a record has nothing to erase, and gets no record"},
	},
	{
		"erase that forgets the status",
		erasing(nothing, func(r *semel.Record) { r.Reply = semel.Reply{} }),
		[]string{
			"Erase/of a done record the headers and the body are gone, and all else stays",
			"Erase/a repeat is told that the reply was not kept, and with which status the operation is done",
		},
	},
	{
		"erase of what is not expired alone",
		func(s *reference) semel.Store {
			return erases{s, func(t *tables, r *semel.Record, a semel.Audit) (semel.EraseResult, bool) {
				if r.Expired() {
					return semel.EraseResult{Outcome: semel.EraseNothing, Record: *r}, false
				}
				res, changed := r.Erase()
				t.audit(res.AuditEntry(a))
				return res, changed
			}}
		},
		[]string{"Erase/an expired record that is not swept yet is erased as well"},
	},
	{
		"erase that prolongs retention",
		erasing(nothing, func(r *semel.Record) { r.Expires = r.Now.Add(30 * 24 * time.Hour) }),
		[]string{"Erase/it does not prolong the retention"},
	},
	{
		"erase that reads and then writes",
		func(s *reference) semel.Store { return eraseReadBefore{s} },
		[]string{"Erase/a record that is claimed anew meanwhile is left to its claim"},
	},
	{
		"erase without a line",
		func(s *reference) semel.Store {
			return erases{s, func(_ *tables, r *semel.Record, _ semel.Audit) (semel.EraseResult, bool) { return r.Erase() }}
		},
		[]string{"Erase/one line of the audit log is left by each reply that goes, however often it is erased"},
	},
	{
		"turns for all",
		func(s *reference) semel.Store {
			return schedules{reference: s, turn: func(*reference, time.Duration) (bool, error) { return true, nil }}
		},
		[]string{
			"SweepTurn/of sixty-four at once one takes the turn",
			"SweepTurn/nobody takes another until it is over, on the store's clock",
			"SweepTurn/each says how long ago the last one must be",
		},
	},
	{
		"turn without comparing",
		func(s *reference) semel.Store { return schedules{reference: s, turn: turnReadBefore} },
		[]string{"SweepTurn/of sixty-four at once one takes the turn"},
	},
	{
		"lag of what is not expired",
		lagging(func(r *semel.Record) time.Duration {
			if r.State == semel.StateDone {
				return max(r.Now.Sub(r.Finished), time.Second)
			}
			return 0
		}),
		[]string{"SweepLag/it is zero where nothing is expired"},
	},
	{
		"lag of the plainly done",
		lagging(func(r *semel.Record) time.Duration {
			if r.State == semel.StateDone && r.ReplyKept && r.Expired() {
				return r.Now.Sub(r.Expires)
			}
			return 0
		}),
		[]string{"SweepLag/it is the age of the first to expire of those that are there, whatever its kind"},
	},
	{
		"lag of what never expires",
		lagging(func(r *semel.Record) time.Duration { return max(r.Now.Sub(r.Created)-30*24*time.Hour, 0) }),
		[]string{"SweepLag/running and unknown records and tombstones lag behind nothing"},
	},
}
