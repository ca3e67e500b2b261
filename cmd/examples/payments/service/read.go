package service

import (
	"context"
	"database/sql"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

const (
	selectPayment = `SELECT amount, currency, recipient_id, charge_id FROM demo_payments WHERE demo = ? AND id = ?`
	selectTotals  = `SELECT door, count(*) FROM demo_payments WHERE demo = ? GROUP BY door`
)

// getPayment shows a stored payment, in the words of the reply that made it.
func (s *Service) getPayment(w http.ResponseWriter, r *http.Request) {
	p := Payment{ID: r.PathValue("id"), Status: "paid"}
	none := payments.NewProblem(http.StatusNotFound, "not-found", "there is no payment "+p.ID)
	if uuid.Validate(p.ID) != nil { // it may be no text that a database could look for
		none.Write(w)
		return
	}
	err := s.read.QueryRowContext(r.Context(), s.sql.payment, s.demo, p.ID).Scan(&p.Amount, &p.Currency, &p.RecipientID, &p.ChargeID)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		none.Write(w)
	case err != nil:
		s.failed(w, r, err)
	default:
		payments.WriteJSON(w, http.StatusOK, p)
	}
}

// totals counts the stored payments of each account.
func (s *Service) totals(w http.ResponseWriter, r *http.Request) {
	counts, err := s.counts(r.Context())
	if err != nil {
		s.failed(w, r, err)
		return
	}
	payments.WriteJSON(w, http.StatusOK, counts)
}

func (s *Service) counts(ctx context.Context) (payments.Totals, error) {
	into := func(a *payments.Account) []any { return []any{&a.Payments} }
	return payments.ReadTotals(ctx, s.read, into, s.sql.totals, s.demo)
}

// failed answers when the database could not be used. Whoever asked may ask
// again.
func (s *Service) failed(w http.ResponseWriter, r *http.Request, err error) {
	s.log.ErrorContext(r.Context(), "database failed", "path", r.URL.Path, "error", err)
	w.Header().Set("Retry-After", "1")
	payments.NewProblem(http.StatusServiceUnavailable, "service-unavailable", "the service could not use its database").Write(w)
}
