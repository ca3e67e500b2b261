package service

import (
	"context"
	"database/sql"
	"errors"
	"net/http"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// getPayment shows a stored payment, in the words of the reply that made it.
func (s *Service) getPayment(w http.ResponseWriter, r *http.Request) {
	p := Payment{ID: r.PathValue("id"), Status: "paid"}
	err := s.read.QueryRowContext(r.Context(), `SELECT amount, currency, recipient_id, charge_id FROM payments WHERE id = ?`, p.ID).
		Scan(&p.Amount, &p.Currency, &p.RecipientID, &p.ChargeID)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		payments.NewProblem(http.StatusNotFound, "not-found", "there is no payment "+p.ID).Write(w)
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

func (s *Service) counts(ctx context.Context) (payments.Ledger, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT door, count(*) FROM payments GROUP BY door`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := payments.Ledger{}
	for rows.Next() {
		var (
			door    payments.Door
			account payments.Account
		)
		if err := rows.Scan(&door, &account.Payments); err != nil {
			return nil, err
		}
		counts[door] = account
	}
	return counts, rows.Err()
}

func (s *Service) failed(w http.ResponseWriter, r *http.Request, err error) {
	s.log.ErrorContext(r.Context(), "database failed", "path", r.URL.Path, "error", err)
	payments.NewProblem(http.StatusInternalServerError, "internal", "the service could not use its database").Write(w)
}
