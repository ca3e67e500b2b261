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
		s.log.InfoContext(r.Context(), payments.LineLooked, "door", a.door, "found", err == nil, "store", s.place.Dialect.System)
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
	a.save = s.alone(a.account)
	rp = s.pay(r.Context(), a)
	if rp.status < http.StatusInternalServerError {
		if err := s.remember(r.Context(), customer, key, rp); err != nil {
			s.log.ErrorContext(r.Context(), "paid and the key not saved", "door", a.door, "error", err)
			problemReply(unsaved("the payment was made, and the key could not be saved")).write(w)
			return
		}
		s.log.InfoContext(r.Context(), payments.LineSavedKey, "door", a.door, "status", rp.status, "store", s.place.Dialect.System)
	}
	rp.write(w)
}

// The customer and the key are what a client has sent, which need not be text.
const (
	selectReply = `SELECT status, location, body FROM demo_naive_replies WHERE demo = ? AND customer = ? AND idempotency_key = ?`
	insertReply = `INSERT INTO demo_naive_replies (demo, customer, idempotency_key, status, location, body) VALUES (?, ?, ?, ?, ?, ?)`
)

func (s *Service) lookUp(ctx context.Context, customer, key string) (reply, error) {
	var rp reply
	err := s.read.QueryRowContext(ctx, s.sql.lookUp, s.demo, []byte(customer), []byte(key)).Scan(&rp.status, &rp.location, &rp.body)
	return rp, err
}

func (s *Service) remember(ctx context.Context, customer, key string, rp reply) error {
	_, err := s.db.ExecContext(ctx, s.sql.remember, s.demo, []byte(customer), []byte(key), rp.status, rp.location, rp.body)
	return err
}
