// Package brokentest holds an API that makes repeated requests safe, and ways to
// break it, each a mistake that real services have made. They show what a
// checker can tell: every broken server fails its own cases, and no others.
package brokentest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/semel-dev/semel/idempotencykey"
)

// Paths of the API.
const (
	OrdersPath  = "/orders"  // POST places an order: {"amount":2500}
	EffectsPath = "/effects" // GET counts the orders: {"orders":3}
	rulesPath   = "/.well-known/idempotency"
)

// TenantHeader tells callers apart. BearerToken is what they all may use.
const (
	TenantHeader = "X-Tenant"
	BearerToken  = "Bearer good"
)

// Server is the API. It keeps keys in memory and forgets none.
type Server struct {
	mistake Mistake
	mu      sync.Mutex
	entries map[string]*entry
	recent  []string // keys in the order of their ends
	orders  int
}

// New returns an API with one mistake; [None] is the sound one.
func New(m Mistake) *Server {
	return &Server{mistake: m, entries: make(map[string]*entry)}
}

// entry is a key that is in use or has its reply.
type entry struct {
	body  []byte
	reply *reply // nil while the work is under way
}

type reply struct {
	status int
	order  string
	body   string
}

func (rp *reply) write(w http.ResponseWriter, replayed bool) {
	w.Header().Set("Content-Type", "application/json")
	if rp.order != "" {
		w.Header().Set("Location", OrdersPath+"/"+rp.order)
	}
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(rp.status)
	io.WriteString(w, rp.body) //nolint:errcheck // a client that has left cannot be told so.
}

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == EffectsPath:
		s.mu.Lock()
		defer s.mu.Unlock()
		json.NewEncoder(w).Encode(map[string]int{"orders": s.orders}) //nolint:errcheck,errchkjson // as above.
	case r.URL.Path == rulesPath:
		io.WriteString(w, `{"endpoints":[{"methods":["POST"],"path":"/orders","required":true,"retention":86400}]}`) //nolint:errcheck // as above.
	case r.URL.Path != OrdersPath:
		refuse(w, http.StatusNotFound, "not-found")
	case r.Method == http.MethodGet && s.mistake == OrdersByGet:
		s.work([]byte(`{"amount":1}`)).write(w, false)
	case r.Method != http.MethodPost:
		refuse(w, http.StatusMethodNotAllowed, "method")
	default:
		s.order(w, r)
	}
}

// order places an order under its key.
func (s *Server) order(w http.ResponseWriter, r *http.Request) {
	key, err := s.key(r.Header["Idempotency-Key"])
	if err != nil {
		refuse(w, http.StatusBadRequest, "key")
		return
	}
	id := s.scoped(r, key)
	if !allowed(r) && !(s.mistake == RepliesToAnybody && s.knows(id)) {
		refuse(w, http.StatusUnauthorized, "unauthorized")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil && s.mistake != TakesHalfABody {
		refuse(w, http.StatusBadRequest, "body")
		return
	}
	if s.mistake == IgnoresTheKey {
		s.work(body).write(w, false)
		return
	}
	if s.mistake == LooksFirst {
		s.lookFirst(w, r, id, body)
		return
	}
	kept, mine := s.claim(id, body)
	switch {
	case mine:
		s.finish(w, r, id, body)
	case !s.fits(kept, body):
		s.misfit(w, id, kept, body)
	case kept.reply == nil:
		s.busy(w)
	default:
		s.replay(w, id, kept)
	}
}

func allowed(r *http.Request) bool { return r.Header.Get("Authorization") == BearerToken }

// key reads the one key of a request.
func (s *Server) key(lines []string) (string, error) {
	key, err := idempotencykey.Parse(lines, false)
	switch {
	case s.mistake == TakesTheFirstKey && len(lines) > 1:
		return lines[0], nil
	case s.mistake == AllowsNoKey && len(lines) == 0:
		return uuid.NewString(), nil
	case err != nil:
		return "", err
	case s.mistake == KeepsTheQuotes:
		return lines[0], nil
	case s.mistake == ComparesKeysCaseBlind:
		return strings.ToLower(key), nil
	case s.mistake == CutsKeysOff:
		return key[:min(len(key), 64)], nil
	}
	return key, nil
}

// scoped is what a key is looked up by.
func (s *Server) scoped(r *http.Request, key string) string {
	if s.mistake == SharesKeysAmongCallers {
		return key
	}
	return r.Header.Get(TenantHeader) + "\x00" + key
}

// claim returns the entry of a key, and whether it has just been made. Nothing
// comes between the look and the entry.
func (s *Server) claim(id string, body []byte) (entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept, known := s.entries[id]; known {
		return *kept, false
	}
	s.entries[id] = &entry{body: body}
	return entry{}, true
}

func (s *Server) knows(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[id] != nil
}

// fits reports whether a request is the one that its key belongs to.
func (s *Server) fits(kept entry, body []byte) bool {
	return s.mistake == IgnoresTheBody || bytes.Equal(kept.body, body)
}

// finish does the work of a claimed key and keeps its reply.
func (s *Server) finish(w http.ResponseWriter, r *http.Request, id string, body []byte) {
	rp := s.work(body)
	refused := rp.status == http.StatusBadRequest && s.mistake != TakesHalfABody
	if refused || s.mistake == StopsWithItsClient && r.Context().Err() != nil {
		s.forget(id)
	} else {
		s.keep(id, body, rp)
	}
	rp.write(w, false)
}

func (s *Server) keep(id string, body []byte, rp *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[id] = &entry{body: body, reply: rp}
	s.recent = append(s.recent, id)
	const room = 16
	if s.mistake == KeepsFewKeys && len(s.recent) > room {
		delete(s.entries, s.recent[0])
		s.recent = s.recent[1:]
	}
}

func (s *Server) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, id)
}

// misfit answers another request under a used key.
func (s *Server) misfit(w http.ResponseWriter, id string, kept entry, body []byte) {
	switch {
	case s.mistake == TakesTheBodyIntoTheKey:
		s.work(body).write(w, false)
		return
	case s.mistake == FreesTheKeyOnMisuse && kept.reply != nil:
		s.forget(id)
	}
	refuse(w, http.StatusUnprocessableEntity, "key-reused")
}

// busy answers who comes too early.
func (s *Server) busy(w http.ResponseWriter) {
	if s.mistake == FailsWhenBusy {
		http.Error(w, "duplicate key value violates unique constraint", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusConflict, "in-progress")
}

// replay gives a kept reply again.
func (s *Server) replay(w http.ResponseWriter, id string, kept entry) {
	if s.mistake == ReplaysOnce {
		s.forget(id)
	}
	if s.mistake == ForgetsLocation {
		forgotten := *kept.reply
		forgotten.order = ""
		kept.reply = &forgotten
	}
	kept.reply.write(w, true)
}

// lookFirst does the work when the key is not known yet, and notes the key when
// the work is done.
func (s *Server) lookFirst(w http.ResponseWriter, r *http.Request, id string, body []byte) {
	s.mu.Lock()
	kept, known := s.entries[id]
	s.mu.Unlock()
	switch {
	case known && !bytes.Equal(kept.body, body):
		refuse(w, http.StatusUnprocessableEntity, "key-reused")
	case known:
		kept.reply.write(w, true)
	default:
		s.finish(w, r, id, body)
	}
}

// workTime is how long an order takes.
const workTime = 50 * time.Millisecond

// work places an order.
func (s *Server) work(body []byte) *reply {
	var order struct {
		Amount json.Number `json:"amount"`
	}
	amount := json.Number("")
	if json.Unmarshal(body, &order) == nil {
		amount = order.Amount
	}
	if amount == "" {
		return &reply{status: http.StatusBadRequest, body: `{"type":"/problems/amount"}`}
	}
	s.mu.Lock()
	s.orders++
	s.mu.Unlock()
	time.Sleep(workTime)
	id := uuid.NewString()
	return &reply{status: http.StatusCreated, order: id, body: `{"id":` + strconv.Quote(id) + `,"amount":` + amount.String() + `}`}
}

func refuse(w http.ResponseWriter, status int, problem string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"type": "/problems/" + problem}) //nolint:errcheck,errchkjson // as above.
}
