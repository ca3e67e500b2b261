package storetest_test

import (
	"context"
	"errors"
	"slices"

	"github.com/semel-dev/semel"
)

// brokenSettlements are faults of forced Begins and of the audit log.
var brokenSettlements = []broken{
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
		"settling what is not there",
		beforeBegin(func(r *semel.Record, p *semel.BeginParams) {
			if r.State == semel.StateAbsent {
				p.Force = nil
			}
		}),
		[]string{"a forced Begin/it is refused on a key without a record, and makes none"},
	},
	{
		"audit lines swept with their record",
		func(s *reference) semel.Store {
			return &faulty{reference: s, sweep: func(ctx context.Context, limit int) (int, error) {
				n, err := s.Sweep(ctx, limit)
				return n, errors.Join(err, s.medium.borrow(func(t *tables) bool {
					t.Audits = slices.DeleteFunc(t.Audits, func(e semel.AuditEntry) bool {
						return t.Records[at{e.Scope, e.Key}].State == semel.StateAbsent
					})
					return true
				}))
			}}
		},
		[]string{"audit/the entries outlive the record, and its tombstone"},
	},
	{
		"audit lines of the latest life",
		replaceBegin(func(s *reference, _ context.Context, p semel.BeginParams) (res semel.BeginResult, err error) {
			err = s.update(p.Scope, p.Key, func(t *tables, r *semel.Record) (changed bool) {
				if r.Expired() {
					t.Audits = nil
				}
				res, changed = begin(t, r, p)
				return changed
			})
			return res, err
		}),
		[]string{"audit/the entries outlive the life they are of: those of the next come after them"},
	},
}
