package service

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// leaseSetting is the body of GET and PUT /lease.
type leaseSetting struct {
	Lease string `json:"lease"`
}

func (s *Service) showLease(w http.ResponseWriter, _ *http.Request) {
	payments.WriteJSON(w, http.StatusOK, leaseSetting{s.current.Load().lease.String()})
}

// setLease changes how long a claim holds: {"lease":"500ms"}. It is kept, since
// this process is one that gets killed.
func (s *Service) setLease(w http.ResponseWriter, r *http.Request) {
	refuse := func(detail string) {
		p := payments.NewProblem(http.StatusBadRequest, "setting-invalid", detail)
		p.Field = "lease"
		p.Write(w)
	}
	body, problem := payments.ReadBody(w, r)
	if problem != nil {
		problem.Write(w)
		return
	}
	var in leaseSetting
	if err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); err != nil {
		refuse(`the body must be {"lease":"2s"}`)
		return
	}
	d, err := payments.ParseLease(in.Lease)
	if err != nil {
		refuse(err.Error())
		return
	}
	if err := s.changeLease(r.Context(), d); err != nil {
		s.failed(w, r, err)
		return
	}
	payments.WriteJSON(w, http.StatusOK, leaseSetting{d.String()})
}

// changeLease keeps d and goes by it. A client that hangs up undoes neither.
func (s *Service) changeLease(ctx context.Context, d time.Duration) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := s.saveLease(context.WithoutCancel(ctx), d); err != nil {
		return err
	}
	return s.protect(d)
}

func (s *Service) saveLease(ctx context.Context, d time.Duration) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO settings (name, value) VALUES ('lease', ?)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`, int64(d))
	return err
}

func (s *Service) savedLease(ctx context.Context) (time.Duration, error) {
	var ns int64
	err := s.read.QueryRowContext(ctx, `SELECT value FROM settings WHERE name = 'lease'`).Scan(&ns)
	if errors.Is(err, sql.ErrNoRows) {
		return defaultLease, nil
	}
	return time.Duration(ns), err
}
