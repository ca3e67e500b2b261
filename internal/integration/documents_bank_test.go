package integration

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
	"github.com/semel-dev/semel/sqlstore"
)

// What docs/sqlite.md and docs/operations.md quote of a shop that charges at a
// bank is here, and what they say is tried.

// checkout charges first, and opens the transaction once the bank has said yes.
type checkout struct {
	bank   string       // where charges are asked for
	client *http.Client // with a Timeout well below the handler deadline
}

func (c checkout) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	op, ok := semel.OperationFrom(ctx)
	if !ok { // not protected, such as a GET: there is no id to charge under
		http.Error(w, "only POST is taken here", http.StatusMethodNotAllowed)
		return
	}
	status, err := c.charge(ctx, op.ID)
	switch {
	case err == nil && status == http.StatusCreated: // charged, by this attempt or an earlier one
	case err == nil && status == http.StatusPaymentRequired:
		http.Error(w, "the card was declined", http.StatusPaymentRequired) // kept: repeats are told the same
		return
	case err == nil && status == http.StatusTooManyRequests:
		semel.DeclareNotApplied(ctx) // the bank has not even looked
		http.Error(w, "the bank is busy", http.StatusServiceUnavailable)
		return
	default: // a timeout, a broken connection, a 5xx, anything else: it may have charged
		http.Error(w, "the bank gave no answer", http.StatusBadGateway)
		return
	}
	tx, err := sqlstore.Tx(ctx)
	if err == nil {
		_, err = tx.ExecContext(ctx, "INSERT INTO orders (item, operation) VALUES (?, ?)", "book", op.ID)
	}
	if err != nil {
		http.Error(w, "charged, and not saved", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintln(w, "ordered as", op.ID)
}

func (c checkout) charge(ctx context.Context, id semel.OperationID) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.bank, strings.NewReader(`{"amount":2500}`))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Idempotency-Key", id.String()) // the same with every attempt
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// protectCheckout is for a bank that remembers an id for a day.
func protectCheckout(store semel.Store, c checkout, scope semelhttp.ScopeFunc) (http.Handler, error) {
	guard, err := semel.New(store, semel.Resume(24*time.Hour), semel.Config{Service: "shop"})
	if err != nil {
		return nil, err
	}
	once, err := semelhttp.New(guard, scope, semelhttp.Config{})
	if err != nil {
		return nil, err
	}
	return once.Protect(c, semelhttp.Route{Name: "checkout", Path: "/checkout", Mode: semel.Joined}) // no AllInTx
}

// settleDone is for an operation that the bank has charged: the order first,
// then the reply that repeats get. What was ordered is not in the record.
func settleDone(ctx context.Context, guard *semel.Guard, db *sql.DB, record semel.Record, item string) error {
	_, err := db.ExecContext(ctx, `INSERT INTO orders (item, operation) VALUES (?, ?)
		ON CONFLICT (operation) DO NOTHING`, item, record.OperationID)
	if err != nil {
		return err
	}
	_, err = guard.Settle(ctx, semel.SettleParams{
		Expect: record,
		As:     semel.SettleDone,
		Reply: &semel.Reply{
			Status: http.StatusCreated,
			Header: semel.Header{"Content-Type": {"text/plain; charset=utf-8"}},
			Body:   fmt.Appendln(nil, "ordered as", record.OperationID),
		},
		Actor:  "ann@example.com",
		Reason: "the bank has charged this id, ticket 4712",
	})
	return err
}

// fakeBank does what it is told with each request, and then charges. A charge
// that it has made under an id it confirms.
type fakeBank struct {
	mu      sync.Mutex
	answers []int // 0 charges and breaks the connection, 500 charges too
	charges map[string]int
}

func (b *fakeBank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	answer := http.StatusCreated
	if len(b.answers) > 0 {
		answer, b.answers = b.answers[0], b.answers[1:]
	}
	id := r.Header.Get("Idempotency-Key")
	if answer != http.StatusPaymentRequired && answer != http.StatusTooManyRequests && b.charges[id] == 0 {
		b.charges[id]++
	}
	if answer == 0 {
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way to break a connection.
	}
	w.WriteHeader(answer)
}

// made is how many charges there are.
func (b *fakeBank) made() (charges int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.charges {
		charges += n
	}
	return charges
}

// till is the shop of the documents, its store and its bank.
type till struct {
	*sqliteStore

	bank *fakeBank
	shop checkout
}

func newTill(t *testing.T, answers ...int) *till {
	t.Helper()
	s := newSQLite(t)
	_, err := s.handles.Write.ExecContext(t.Context(), schemaOfThePage(t))
	assert.NoError(t, err)
	bank := &fakeBank{answers: answers, charges: make(map[string]int)}
	srv := httptest.NewServer(bank)
	t.Cleanup(srv.Close)
	return &till{sqliteStore: s, bank: bank, shop: checkout{bank: srv.URL, client: srv.Client()}}
}

// schemaOfThePage is the table that the program of docs/sqlite.md makes.
func schemaOfThePage(t *testing.T) string {
	t.Helper()
	_, after, _ := strings.Cut(document(t, "docs/sqlite.md"), "const schema = `")
	schema, _, ok := strings.Cut(after, "`")
	assert.True(t, ok, "docs/sqlite.md has a schema")
	return schema
}

func buy(t *testing.T, h http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/checkout", strings.NewReader(`{"item":"book"}`))
	r.Header.Set("Idempotency-Key", "k")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func buyer(*http.Request) (string, error) { return "customer:1", nil }

// bought checks how many charges and orders there are.
func (s *till) bought(t *testing.T, charges, orders int) {
	t.Helper()
	assert.Equal(t, s.bank.made(), charges, "charges")
	var rows int
	assert.NoError(t, s.handles.Read.QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&rows))
	assert.Equal(t, rows, orders, "orders")
}

func TestWhatTheBankSaysIsWhatTheTableOfTheSQLitePageSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bank          []int // then it charges
		first, second string
		charges       int
	}{
		"charged":                               {nil, "201 executed", "201 replayed", 1},
		"declined":                              {[]int{402}, "402 executed", "402 replayed", 0},
		"busy":                                  {[]int{429}, "503 released", "201 executed", 1},
		"broken off after the charge":           {[]int{0}, "502 unknown", "201 executed", 1},
		"an error after the charge":             {[]int{500}, "502 unknown", "201 executed", 1},
		"busy after a charge that nobody knows": {[]int{500, 429}, "502 unknown", "503 unknown", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTill(t, c.bank...)
			h, err := protectCheckout(s, s.shop, buyer)
			assert.NoError(t, err)
			for _, want := range []string{c.first, c.second} {
				got := buy(t, h)
				assert.Equal(t, fmt.Sprint(got.Code, " ", got.Header().Get("Semel-Outcome")), want)
			}
			orders := 0
			if strings.HasPrefix(c.second, "201") {
				orders = 1
			}
			s.bought(t, c.charges, orders)
		})
	}
}

func TestSettlingAsDoneAsTheOperationsPageShowsIt(t *testing.T) {
	t.Parallel()
	s := newTill(t, 0)
	guard, err := semel.New(s, semel.Hold(), semel.Config{Service: "shop"})
	assert.NoError(t, err)
	once, err := semelhttp.New(guard, buyer, semelhttp.Config{Logger: unheard})
	assert.NoError(t, err)
	h, err := once.Protect(s.shop, semelhttp.Route{Name: "checkout", Mode: semel.Joined})
	assert.NoError(t, err)
	assert.Equal(t, buy(t, h).Code, http.StatusBadGateway, "the answer of the bank is lost")
	assert.Equal(t, buy(t, h).Code, http.StatusConflict, "a repeat under Hold")
	s.bought(t, 1, 0)

	record, err := guard.Get(t.Context(), "customer:1", "k")
	assert.NoError(t, err)
	stale := record
	stale.Attempt++
	err = settleDone(t.Context(), guard, s.handles.Write, stale, "book")
	assert.ErrorIs(t, err, semel.ErrSettleRefused, "a settlement that ends half-way")
	again, err := guard.Get(t.Context(), "customer:1", "k")
	assert.NoError(t, err)
	assert.Equal(t, again.State, semel.StateUnknown)
	s.bought(t, 1, 1)

	assert.NoError(t, settleDone(t.Context(), guard, s.handles.Write, again, "book"), "the same again")
	got := buy(t, h)
	assert.Equal(t, got.Code, http.StatusCreated)
	assert.Equal(t, got.Header().Get("Semel-Outcome"), "replayed")
	assert.Equal(t, got.Header().Get("Content-Type"), "text/plain; charset=utf-8")
	body, err := io.ReadAll(got.Body)
	assert.NoError(t, err)
	assert.Equal(t, string(body), fmt.Sprintln("ordered as", record.OperationID), "as the handler would have said")
	s.bought(t, 1, 1)

	asked := queries(t, "docs/operations.md")
	assert.Equal(t, answers(t, s.handles.Read, asked[2], "scope", "key", "attempt", "what", "actor"), []string{
		"customer:1 k 2 taken over ann@example.com",
		"customer:1 k 2 done ann@example.com",
	})
}
