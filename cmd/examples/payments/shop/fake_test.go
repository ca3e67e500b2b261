package shop_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/crowd"
	"github.com/semel-dev/semel/cmd/examples/payments/shop"
)

// sent is a payment request as the fake front received it.
type sent struct {
	Door  payments.Door
	Key   string
	Order string
	Body  string
}

// fakeFront answers what the page asks the front for. The keyed door charges
// once for each key, the keyless one each time; a request may bring the faults
// request-lost and reply-lost along.
type fakeFront struct {
	mu   sync.Mutex
	sent []sent
	// met are the faults that the requests brought along, in their order.
	met []string
	// reads is how often the ledger was asked for, and reading is called each
	// time, if it is set.
	reads   int
	reading func()
	// lives is how many pages have asked for the news.
	lives atomic.Int64
	// known holds each order of each door, charged each that was charged, and
	// paid each key.
	known, charged map[string]bool
	paid           map[string]bool
	ledger         payments.Ledger
	log            []map[string]any
	// settings are the bodies that were put or posted, by their path, and
	// report is that of the crowd.
	settings map[string]map[string]any
	report   crowd.Report
	// arrived is called for each payment before anything else, if it is set.
	arrived func(*http.Request)
	// answer replaces the answer to a payment, if it is set.
	answer http.HandlerFunc
	// broken makes /demo/ answer 500, and busy a start of the crowd 409.
	broken bool
	busy   bool
}

// newShop starts a fake front with the page at its root, as the real one has it.
func newShop(t testing.TB, cfg shop.Config) (*fakeFront, string) {
	t.Helper()
	f := &fakeFront{known: map[string]bool{}, charged: map[string]bool{}, paid: map[string]bool{}, ledger: payments.Ledger{}, settings: map[string]map[string]any{}}
	mux := http.NewServeMux()
	for _, door := range payments.Doors() {
		mux.HandleFunc("POST "+door.Path(), f.pay)
	}
	mux.HandleFunc("GET /demo/ledger", func(w http.ResponseWriter, r *http.Request) {
		if f.reading != nil {
			f.reading()
		}
		f.show(func() any { f.reads++; return f.ledger })(w, r)
	})
	mux.HandleFunc("GET /demo/log", f.show(func() any { return f.log }))
	mux.HandleFunc("GET /demo/service", f.show(func() any { return f.setting("/demo/service", "lease", "2s") }))
	mux.HandleFunc("PUT /demo/service", f.set)
	mux.HandleFunc("GET /demo/bank", f.show(func() any { return f.setting("/demo/bank", "dedupe", true) }))
	mux.HandleFunc("PUT /demo/bank", f.set)
	mux.HandleFunc("GET /demo/crowd", f.show(func() any { return f.report }))
	mux.HandleFunc("POST /demo/crowd", f.run)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	cfg.Front = server.URL
	if cfg.AnswerWithin == 0 {
		cfg.AnswerWithin = time.Minute // an answer is not late because the machine is slow
	}
	page, err := shop.New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/shop/live" {
			f.lives.Add(1)
		}
		page.ServeHTTP(w, r)
	})
	return f, server.URL
}

func (f *fakeFront) show(what func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.broken {
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		}
		payments.WriteJSON(w, http.StatusOK, what())
	}
}

// run starts a run, unless there is one.
func (f *fakeFront) run(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	busy := f.busy
	f.mu.Unlock()
	if busy {
		payments.NewProblem(http.StatusConflict, "crowd-running", "a run is under way: start another when it has ended").Write(w)
		return
	}
	f.set(w, r)
}

// set remembers what a process behind was told.
func (f *fakeFront) set(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var in map[string]any
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || f.broken {
		http.Error(w, "not set", http.StatusInternalServerError)
		return
	}
	f.settings[r.URL.Path] = in
	payments.WriteJSON(w, http.StatusOK, in)
}

func (f *fakeFront) setting(path, name string, otherwise any) map[string]any {
	if in, ok := f.settings[path]; ok {
		return in
	}
	return map[string]any{name: otherwise}
}

// pay takes a payment as the reference system would, without its processes.
func (f *fakeFront) pay(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if f.arrived != nil {
		f.arrived(r)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	door, _ := payments.DoorOf(r)
	s := sent{
		Door:  door,
		Key:   r.Header.Get(payments.HeaderKey),
		Order: r.Header.Get(payments.HeaderOrder),
		Body:  string(body),
	}
	f.sent = append(f.sent, s)
	f.log = append(f.log, map[string]any{"door": door, "order": s.Order})
	f.met = append(f.met, r.Header.Get(payments.HeaderFault))
	fault := payments.Fault(r.Header.Get(payments.HeaderFault))
	account := f.ledger[door]
	defer func() { f.ledger[door] = account }()
	if order := string(door) + s.Order; !f.known[order] {
		f.known[order] = true
		account.Orders++
	}
	if fault == payments.RequestLost {
		panic(http.ErrAbortHandler)
	}
	replayed := s.Key != "" && f.paid[s.Key]
	if order := string(door) + s.Order; !replayed && !f.charged[order] {
		f.charged[order] = true
		account.Charged++
	}
	if !replayed {
		account.Charges++
		account.Taken += 2500
		f.paid[s.Key] = true
	}
	if fault == payments.ReplyLost {
		panic(http.ErrAbortHandler)
	}
	if f.answer != nil {
		f.answer(w, r)
		return
	}
	outcome := "executed"
	if replayed {
		outcome = "replayed"
	}
	w.Header().Set("Semel-Outcome", outcome)
	payments.WriteJSON(w, http.StatusCreated, map[string]string{"id": "p_1"})
}
