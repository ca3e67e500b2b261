package service

import (
	"context"
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

const (
	insertSetting = `INSERT INTO demo_settings (demo, name, value) VALUES (?, ?, ?)`
	selectSetting = `SELECT value FROM demo_settings WHERE demo = ? AND name = ?`
	// settingLease is the lease, in nanoseconds.
	settingLease = "lease"
)

func (s *Service) saveLease(ctx context.Context, d time.Duration) error {
	_, err := s.db.ExecContext(ctx, s.sql.changeSetting, s.demo, settingLease, int64(d))
	return err
}

// savedLease returns the lease that is kept, which at first is the default.
func (s *Service) savedLease(ctx context.Context) (time.Duration, error) {
	if err := s.place.Register(ctx, s.demo); err != nil {
		return 0, err
	}
	var ns int64
	err := s.read.QueryRowContext(ctx, s.sql.setting, s.demo, settingLease).Scan(&ns)
	return time.Duration(ns), unavailable(err, "read the lease that is kept")
}
