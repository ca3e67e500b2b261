package service

import (
	"context"
	"database/sql"
	"errors"
	"net/http"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// payNaive is what people write first, and the order of its three steps is the
// mistake: two requests that look at once both find nothing, and a service
// killed between the work and the save has forgotten that it worked.
func (s *Service) payNaive(w http.ResponseWriter, r *http.Request) {
	a, problem := newAttempt(w, r, payments.Naive)
	if problem != nil {
		problem.Write(w)
		return
	}
	key, problem := payments.NaiveKeyOf(r)
	if problem != nil {
		problem.Write(w)
		return
	}
	customer := payments.CustomerOf(r)
	rp, err := s.lookUp(r.Context(), customer, key)
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		s.log.InfoContext(r.Context(), "looked for the key", "door", a.door, "found", err == nil)
	}
	if err == nil {
		w.Header().Set("Idempotent-Replayed", "true")
		rp.write(w)
		return
	}
	if !errors.Is(err, sql.ErrNoRows) {
		s.failed(w, r, err)
		return
	}
	a.save = s.saver(a.account)
	rp = s.pay(r.Context(), a)
	if rp.status < http.StatusInternalServerError {
		if err := s.remember(r.Context(), customer, key, rp); err != nil {
			s.failed(w, r, err)
			return
		}
		s.log.InfoContext(r.Context(), "saved the key", "door", a.door, "status", rp.status)
	}
	rp.write(w)
}

func (s *Service) lookUp(ctx context.Context, customer, key string) (reply, error) {
	var rp reply
	err := s.read.QueryRowContext(ctx, `SELECT status, location, body FROM naive_replies WHERE customer = ? AND key = ?`, customer, key).
		Scan(&rp.status, &rp.location, &rp.body)
	return rp, err
}

func (s *Service) remember(ctx context.Context, customer, key string, rp reply) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO naive_replies (customer, key, status, location, body) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`, customer, key, rp.status, rp.location, rp.body)
	return err
}
