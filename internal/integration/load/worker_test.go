package load

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/semelhttp"
)

// workerVariable makes the test program a worker, and says which.
const workerVariable = "SEMEL_LOAD_WORKER"

var unheard = slog.New(slog.DiscardHandler)

// setting is what a worker is told.
type setting struct {
	Technology  string
	DSN         string
	Connections int // to the store's database
	Mode        string
	Hold        bool // else it resumes
	Lease       time.Duration
	Work        time.Duration // how long a payment takes at most, between its row and its end
	Journal     string        // the file
}

func TestMain(m *testing.M) {
	mysql.SetLogger(&mysql.NopLogger{}) //nolint:errcheck // it is one.
	text := os.Getenv(workerVariable)
	if text == "" {
		os.Exit(services.Main(m))
	}
	var s setting
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = s.serve(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load: worker:", err)
		os.Exit(1)
	}
}

const (
	// accountHeader says whose payment it is.
	accountHeader = "X-Account"
	// slowHeader says that its work is to take slowWork.
	slowHeader = "X-Slow"
	slowWork   = 500 * time.Millisecond
)

func scope(r *http.Request) (string, error) {
	account := r.Header.Get(accountHeader)
	if account == "" {
		return "", errors.New("no account")
	}
	p := payment{account: account}
	return p.scope(), nil
}

// recovery is Hold, or Resume for good: the journal forgets nothing.
func (s *setting) recovery() semel.Recovery {
	if s.Hold {
		return semel.Hold()
	}
	return semel.Resume(semel.Forever)
}

// guard returns a guard over b as the workers have it.
func (s *setting) guard(b *backend) (*semel.Guard, error) {
	return semel.New(b.Store, s.recovery(), semel.Config{Service: service, Lease: s.Lease, Logger: unheard})
}

// serve takes payments on a port of its own, whose address is its first line,
// until its input ends.
func (s *setting) serve(in io.Reader, out io.Writer) error {
	ctx := context.Background()
	t := technologies[s.Technology]
	b, err := t.open(ctx, s.DSN, s.Connections)
	if err != nil {
		return err
	}
	defer b.close()
	journal, err := os.OpenFile(s.Journal, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer journal.Close()
	g, err := s.guard(b)
	if err != nil {
		return err
	}
	mw, err := semelhttp.New(g, scope, semelhttp.Config{Logger: unheard})
	if err != nil {
		return err
	}
	h, err := mw.Protect(&till{backend: b, mw: mw, journal: journal, work: s.Work}, semelhttp.Route{Name: "payments", Mode: modeOf(s.Mode)})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go srv.Serve(l)
	defer srv.Close()
	fmt.Fprintln(out, l.Addr())
	_, err = io.Copy(io.Discard, in)
	return err
}

// till is the handler.
type till struct {
	*backend

	mw      *semelhttp.Middleware
	journal *os.File
	work    time.Duration
}

// ServeHTTP makes one payment: a row in the transaction, where there is one, and
// then what no rollback undoes, a line in the journal. Work that could not even
// write its row had no effect.
func (t *till) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	op, _ := semel.OperationFrom(ctx)
	e := effect{Operation: op.ID.String(), Account: r.Header.Get(accountHeader), Key: op.Key, Receipt: rand.Text()}
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if t.book != nil {
		if err := t.book(ctx, &e); err != nil {
			semel.DeclareNotApplied(ctx)
			t.mw.WriteProblem(w, semelhttp.ProblemStoreUnavailable, "")
			return
		}
	}
	switch {
	case r.Header.Get(slowHeader) != "":
		<-time.After(slowWork)
	case t.work > 0:
		<-time.After(mathrand.N(t.work))
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = t.journal.Write(append(line, '\n'))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	w.Write(line)
}
