package service

import (
	"context"
	"net/http"

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
	account  payments.AccountName
	noted    string // the order's number there
	chargeID string // the bank's key
	fault    payments.Fault
	request  string
	// save writes the payment: joined with Semel's reply, or by itself. It
	// reports whether the payment was there already.
	save   saver
	joined bool
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
	if rp.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(rp.status)
	w.Write(rp.body)
}

// unsaved is the answer when the money was asked for, and the database, which
// somebody else has for too long, did not take what has to be kept of it.
func unsaved(detail string) *payments.Problem {
	return payments.NewProblem(http.StatusServiceUnavailable, "payment-unsaved", detail)
}

func problemReply(p *payments.Problem) reply { return reply{status: p.Status, body: p.Body()} }

// pay is the business function behind all three doors: the bank first, the row
// afterwards. It knows nothing of Semel.
func (s *Service) pay(ctx context.Context, a attempt) reply {
	if a.fault == payments.KilledBeforeCharge {
		payments.Die()
	}
	chargeID, problem := s.bank.charge(ctx, a)
	if problem != nil {
		s.log.InfoContext(ctx, "not paid", "door", a.door, "code", problem.Code)
		return problemReply(problem)
	}
	if a.fault == payments.KilledAfterCharge {
		payments.Die()
	}
	p := Payment{ID: a.chargeID, Order: a.order, Status: "paid", ChargeID: chargeID}
	found, err := a.save(ctx, p)
	if err != nil {
		s.log.ErrorContext(ctx, payments.LineNotSaved, "door", a.door, "error", err)
		return problemReply(unsaved("the bank was asked, and the payment could not be saved; send the same request again, with the same key"))
	}
	s.log.InfoContext(ctx, payments.LinePaid, "door", a.door, "payment", p.ID, "charge", chargeID,
		"found", found, "joined", a.joined, "store", s.place.Dialect.System)
	return reply{status: http.StatusCreated, location: "/payments/" + p.ID, body: payments.Marshal(p)}
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
	a.save, a.joined = s.inReply(a.account), true
	if s.mode == semel.Leased {
		a.save, a.joined = s.beforeReply(a.account), false
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
	a.save = s.alone(a.account)
	s.pay(r.Context(), a).write(w)
}

// saver writes a payment and reports whether it was there already.
type saver func(context.Context, Payment) (found bool, err error)

const insertPayment = `INSERT INTO demo_payments (demo, id, door, amount, currency, recipient_id, charge_id) VALUES (?, ?, ?, ?, ?, ?, ?)`

// inReply writes a payment in the transaction in which Semel saves the reply.
func (s *Service) inReply(account payments.AccountName) saver {
	return func(ctx context.Context, p Payment) (bool, error) {
		tx, err := sqlstore.Tx(ctx)
		if err != nil {
			return false, err
		}
		_, err = tx.ExecContext(ctx, s.sql.pay, s.values(account, p)...)
		return false, err
	}
}

// beforeReply writes a payment unless it is there. Semel saves the reply
// afterwards, in another store: an attempt that dies in between leaves its
// payment, and the next one, whose operation id is the same, finds it.
func (s *Service) beforeReply(account payments.AccountName) saver {
	return func(ctx context.Context, p Payment) (bool, error) {
		res, err := s.db.ExecContext(ctx, s.sql.payOnce, s.values(account, p)...)
		if err != nil {
			return false, err
		}
		n, err := res.RowsAffected()
		return n == 0, err
	}
}

// alone writes a payment by itself.
func (s *Service) alone(account payments.AccountName) saver {
	return func(ctx context.Context, p Payment) (bool, error) {
		_, err := s.db.ExecContext(ctx, s.sql.pay, s.values(account, p)...)
		return false, err
	}
}

// values are the row of a payment.
func (s *Service) values(account payments.AccountName, p Payment) []any {
	return []any{s.demo, p.ID, string(account), p.Amount, p.Currency, p.RecipientID, p.ChargeID}
}
