package service

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"os"

	"github.com/google/uuid"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/sqlstore"
)

// Payment is a payment as it is stored and shown.
type Payment struct {
	ID string `json:"id"`
	payments.Order
	Status   string `json:"status"`
	ChargeID string `json:"chargeId"` // at the bank
}

// attempt is one request to pay, as the business function gets it.
type attempt struct {
	order    payments.Order
	door     payments.Door
	account  payments.Door // of the ledger
	noted    string        // the order's number there
	chargeID string        // the bank's key
	fault    payments.Fault
	request  string
	// save writes the payment: joined with Semel's reply, or by itself.
	save func(ctx context.Context, p Payment) error
}

// reply is what the business function answers.
type reply struct {
	status   int
	location string
	body     []byte
}

func (rp reply) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if rp.status >= http.StatusBadRequest {
		h.Set("Content-Type", "application/problem+json")
	}
	if rp.location != "" {
		h.Set("Location", rp.location)
	}
	w.WriteHeader(rp.status)
	w.Write(rp.body)
}

func problemReply(p *payments.Problem) reply { return reply{status: p.Status, body: p.Body()} }

// pay is the business function behind all three doors: the bank first, the row
// afterwards. It knows nothing of Semel.
func (s *Service) pay(ctx context.Context, a attempt) reply {
	if a.fault == payments.KilledBeforeCharge {
		die()
	}
	chargeID, problem := s.bank.charge(ctx, a)
	if problem != nil {
		s.log.InfoContext(ctx, "not paid", "door", a.door, "code", problem.Code)
		return problemReply(problem)
	}
	if a.fault == payments.KilledAfterCharge {
		die()
	}
	p := Payment{ID: a.chargeID, Order: a.order, Status: "paid", ChargeID: chargeID}
	if err := a.save(ctx, p); err != nil {
		s.log.ErrorContext(ctx, "charged and not saved", "door", a.door, "error", err)
		return problemReply(payments.NewProblem(http.StatusInternalServerError, "internal", "the payment could not be saved"))
	}
	s.log.InfoContext(ctx, "paid", "door", a.door, "payment", p.ID, "charge", chargeID)
	return reply{status: http.StatusCreated, location: "/payments/" + p.ID, body: payments.Marshal(p)}
}

// die is SIGKILL, for the faults that kill the service: nothing is flushed,
// closed or undone.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		self.Kill()
	}
	select {} // the signal is on its way; nothing may happen any more
}

// newAttempt reads the order of r.
func newAttempt(w http.ResponseWriter, r *http.Request, door payments.Door) (attempt, *payments.Problem) {
	body, problem := payments.ReadBody(w, r)
	if problem != nil {
		return attempt{}, problem
	}
	order, problem := payments.ParseOrder(r.Header.Get("Content-Type"), body)
	return attempt{
		order:    order,
		door:     door,
		account:  door.AccountOf(payments.CustomerOf(r)),
		chargeID: uuid.NewString(),
		noted:    r.Header.Get(payments.InternalOrder),
		fault:    payments.Fault(r.Header.Get(payments.InternalFault)),
		request:  r.Header.Get(payments.InternalRequest),
	}, problem
}

// payKeyed runs under Semel: at most one attempt of an operation at a time,
// and never again once its reply is saved.
func (s *Service) payKeyed(w http.ResponseWriter, r *http.Request) {
	a, problem := newAttempt(w, r, payments.Keyed)
	if problem != nil {
		problem.Write(w)
		return
	}
	op, ok := semel.OperationFrom(r.Context())
	if !ok {
		payments.NewProblem(http.StatusInternalServerError, "internal", "this door must be protected").Write(w)
		return
	}
	a.chargeID = op.ID.String()
	a.save = func(ctx context.Context, p Payment) error {
		tx, err := sqlstore.Tx(ctx)
		if err != nil {
			return err
		}
		return insert(ctx, tx, a.account, p)
	}
	s.pay(r.Context(), a).write(w)
}

// payKeyless has nothing before it.
func (s *Service) payKeyless(w http.ResponseWriter, r *http.Request) {
	a, problem := newAttempt(w, r, payments.Keyless)
	if problem != nil {
		problem.Write(w)
		return
	}
	a.save = s.saver(a.account)
	s.pay(r.Context(), a).write(w)
}

// saver returns a function that writes a payment in a transaction of its own.
func (s *Service) saver(account payments.Door) func(context.Context, Payment) error {
	return func(ctx context.Context, p Payment) error {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := insert(ctx, tx, account, p); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	}
}

// execer is a plain transaction, or the one that Semel joins.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func insert(ctx context.Context, tx execer, account payments.Door, p Payment) error {
	_, err := tx.ExecContext(ctx,
		`INSERT INTO payments (id, door, amount, currency, recipient_id, charge_id) VALUES (?, ?, ?, ?, ?, ?)`,
		p.ID, string(account), p.Amount, p.Currency, p.RecipientID, p.ChargeID)
	return err
}
