// Package bank is the bank of the reference system. It takes money when it is
// asked to, never runs dry, and remembers every charge for good.
//
// Like real banks it has an idempotency key of its own: charges with one
// Idempotency-Key are one charge, also when they arrive at once and also after
// a restart. [Bank.Handler] lets that be switched off, to show what becomes of
// a payment service whose bank does not honour the operation id.
package bank

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// askTimeout bounds one charge from when the bank has read it.
const askTimeout = 10 * time.Second

// Config is what a bank may be told; zero means the default.
type Config struct {
	// ForgetsKeys starts the bank with its deduplication switched off.
	ForgetsKeys bool
	// Logger gets a line for each charge. Default slog.Default().
	Logger *slog.Logger
}

// Bank keeps the charges in one database.
type Bank struct {
	db      *sql.DB
	forgets atomic.Bool
	cfg     Config
}

// Charge is money taken once.
type Charge struct {
	// ID is the key that the charge was asked for with, or a random id where
	// there was none or the bank does not look at keys.
	ID string `json:"id"`
	payments.Order
	// Asked is how often the bank was asked for it, by its key, failed
	// requests included.
	Asked int64 `json:"asked"`

	key string
}

const schema = `
CREATE TABLE IF NOT EXISTS charges (
	id           TEXT PRIMARY KEY,
	key          TEXT NOT NULL,
	door         TEXT NOT NULL,
	noted        TEXT,
	amount       INTEGER NOT NULL,
	currency     TEXT NOT NULL,
	recipient_id TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS asks (
	id     INTEGER PRIMARY KEY,
	key    TEXT NOT NULL,
	answer TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS asks_key ON asks (key);
`

// New returns a bank over db, which must begin its transactions with BEGIN
// IMMEDIATE: that is what makes two charges with one key take turns.
func New(ctx context.Context, db *sql.DB, cfg Config) (*Bank, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, fmt.Errorf("bank: create the tables: %w", err)
	}
	b := &Bank{db: db, cfg: cfg}
	b.forgets.Store(cfg.ForgetsKeys)
	return b, nil
}

// Handler returns the bank's interface: POST /charges, GET /charges/{id},
// GET /totals, GET and PUT /dedupe.
func (b *Bank) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", b.post)
	mux.HandleFunc("GET /charges/{id}", b.get)
	mux.HandleFunc("GET /totals", b.totals)
	mux.HandleFunc("GET /dedupe", b.showDedupe)
	mux.HandleFunc("PUT /dedupe", b.setDedupe)
	mux.HandleFunc("/", payments.NotFound)
	return payments.Numbered(mux)
}

// post takes the money. A caller that hangs up does not stop it.
func (b *Bank) post(w http.ResponseWriter, r *http.Request) {
	body, problem := payments.ReadBody(w, r)
	var order payments.Order
	if problem == nil {
		order, problem = payments.ParseOrder(r.Header.Get("Content-Type"), body)
	}
	if problem != nil {
		problem.Write(w)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), askTimeout+payments.SlowFor)
	defer cancel()
	fault := payments.Fault(r.Header.Get(payments.InternalFault))
	if fault == payments.Slow {
		payments.Pause(ctx, payments.SlowFor)
	}
	a := ask{
		key:     r.Header.Get(payments.HeaderKey),
		account: r.Header.Get(payments.InternalAccount),
		noted:   r.Header.Get(payments.InternalOrder),
		order:   order,
		fails:   fault == payments.BankError || order.RecipientID == payments.RecipientBankError,
	}
	charge, answer, err := b.take(ctx, a)
	log := b.cfg.Logger.With("charge_key", a.key)
	if err != nil {
		log.ErrorContext(ctx, "charge failed", "error", err)
		payments.NewProblem(http.StatusInternalServerError, "internal", "the bank could not write").Write(w)
		return
	}
	log.InfoContext(ctx, payments.LineCharge, "answer", string(answer), "asked", charge.Asked, "amount", order.Amount)
	answer.write(w, charge)
}

// ask is one request for a charge.
type ask struct {
	key     string
	account string
	noted   string // the order's number in the order book, if it has one
	order   payments.Order
	fails   bool
}

// answer is what the bank says to an ask.
type answer string

// The answers.
const (
	answerTaken    answer = payments.ChargeTaken
	answerKnown    answer = payments.ChargeKnown
	answerDeclined answer = "declined"
	answerFailed   answer = "failed"
	answerReused   answer = "key of another charge"
)

func (a answer) write(w http.ResponseWriter, c Charge) {
	switch a {
	case answerTaken, answerKnown:
		payments.WriteJSON(w, http.StatusCreated, c)
	case answerDeclined:
		payments.NewProblem(http.StatusPaymentRequired, "charge-declined", "the recipient's bank declined").Write(w)
	case answerReused:
		payments.NewProblem(http.StatusUnprocessableEntity, "charge-key-reused", "another charge was made with this key").Write(w)
	default:
		payments.NewProblem(http.StatusInternalServerError, "bank-error", "the bank is out of order; nothing was taken").Write(w)
	}
}

// take decides and writes in one transaction.
func (b *Bank) take(ctx context.Context, a ask) (Charge, answer, error) {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return Charge{}, "", err
	}
	defer tx.Rollback() //nolint:errcheck // after the commit there is nothing left to undo.
	charge, said, err := b.decide(ctx, tx, a)
	if err != nil {
		return Charge{}, "", err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO asks (key, answer) VALUES (?, ?)`, a.key, string(said)); err != nil {
		return Charge{}, "", err
	}
	if charge.Asked, err = asked(ctx, tx, a.key); err != nil {
		return Charge{}, "", err
	}
	return charge, said, tx.Commit()
}

func (b *Bank) decide(ctx context.Context, tx *sql.Tx, a ask) (Charge, answer, error) {
	if a.fails {
		return Charge{}, answerFailed, nil
	}
	honoured := a.key != "" && !b.forgets.Load()
	if honoured {
		known, err := find(ctx, tx, a.key)
		switch {
		case err == nil && known.Order != a.order:
			return Charge{}, answerReused, nil
		case err == nil:
			return known, answerKnown, nil
		case !errors.Is(err, sql.ErrNoRows):
			return Charge{}, "", err
		}
	}
	if a.order.RecipientID == payments.RecipientDeclined {
		return Charge{}, answerDeclined, nil
	}
	charge := Charge{ID: a.key, Order: a.order, key: a.key}
	if !honoured {
		charge.ID = uuid.NewString()
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO charges (id, key, door, noted, amount, currency, recipient_id) VALUES (?, ?, ?, nullif(?, ''), ?, ?, ?)`,
		charge.ID, a.key, a.account, a.noted, a.order.Amount, a.order.Currency, a.order.RecipientID)
	return charge, answerTaken, err
}

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func find(ctx context.Context, q queryer, id string) (Charge, error) {
	c := Charge{ID: id}
	err := q.QueryRowContext(ctx, `SELECT key, amount, currency, recipient_id FROM charges WHERE id = ?`, id).
		Scan(&c.key, &c.Amount, &c.Currency, &c.RecipientID)
	return c, err
}

func asked(ctx context.Context, q queryer, key string) (int64, error) {
	var n int64
	if key == "" {
		return 1, nil
	}
	err := q.QueryRowContext(ctx, `SELECT count(*) FROM asks WHERE key = ?`, key).Scan(&n)
	return n, err
}

// get shows one charge.
func (b *Bank) get(w http.ResponseWriter, r *http.Request) {
	charge, err := find(r.Context(), b.db, r.PathValue("id"))
	if errors.Is(err, sql.ErrNoRows) {
		payments.NewProblem(http.StatusNotFound, "not-found", "the bank has no charge "+r.PathValue("id")).Write(w)
		return
	}
	if err == nil {
		charge.Asked, err = asked(r.Context(), b.db, charge.key)
	}
	if err != nil {
		b.failed(w, r, err)
		return
	}
	payments.WriteJSON(w, http.StatusOK, charge)
}

// totals adds up the charges of each account, and counts the orders that they
// were for. A charge that says of no order what it is for counts as none. With
// ?order=NUMBER only the charges for that order count.
func (b *Bank) totals(w http.ResponseWriter, r *http.Request) {
	sums, err := b.sums(r.Context(), r.URL.Query().Get("order"))
	if err != nil {
		b.failed(w, r, err)
		return
	}
	payments.WriteJSON(w, http.StatusOK, sums)
}

func (b *Bank) sums(ctx context.Context, order string) (payments.Totals, error) {
	into := func(a *payments.Account) []any { return []any{&a.Charges, &a.Charged, &a.Taken} }
	return payments.ReadTotals(ctx, b.db, into, `SELECT door, count(*), count(DISTINCT noted), sum(amount) FROM charges
		WHERE ?1 IN ('', noted) GROUP BY door`, order)
}

func (b *Bank) failed(w http.ResponseWriter, r *http.Request, err error) {
	b.cfg.Logger.ErrorContext(r.Context(), "read failed", "path", r.URL.Path, "error", err)
	payments.NewProblem(http.StatusInternalServerError, "internal", "the bank could not read").Write(w)
}

// setDedupe switches the bank's deduplication: {"dedupe":false} is a bank that
// charges again for a key it knows.
func (b *Bank) setDedupe(w http.ResponseWriter, r *http.Request) {
	body, problem := payments.ReadBody(w, r)
	if problem != nil {
		problem.Write(w)
		return
	}
	var in struct {
		Dedupe *bool `json:"dedupe"`
	}
	if err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); err != nil || in.Dedupe == nil {
		payments.NewProblem(http.StatusBadRequest, "setting-invalid", `the body must be {"dedupe":true} or {"dedupe":false}`).Write(w)
		return
	}
	b.forgets.Store(!*in.Dedupe)
	b.showDedupe(w, r)
}

func (b *Bank) showDedupe(w http.ResponseWriter, _ *http.Request) {
	payments.WriteJSON(w, http.StatusOK, map[string]bool{"dedupe": !b.forgets.Load()})
}
