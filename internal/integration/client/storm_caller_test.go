package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel/semelclient"
	"github.com/semel-dev/semel/semelclient/retry"
)

// What a caller is told by its environment: the folder it shares with the others,
// where the service is, who it is, which life of it this is, of how many callers,
// and how many orders there are.
const (
	folderVariable = "SEMEL_CLIENT_FOLDER"
	urlVariable    = "SEMEL_CLIENT_URL"
	selfVariable   = "SEMEL_CLIENT_SELF" // "caller life callers orders"
)

// working is how many orders a caller is at work on at once, beside those that it
// recovers.
const working = 4

// tryHeader numbers what a caller hands to its transport, so that the wire shows
// what the transport sends again by itself.
const tryHeader = "Try"

type shop struct {
	client   *semelclient.Client
	url      string
	booked   *os.File
	attempts *os.File
	life     string
	tries    atomic.Int64
}

// caller is a shop: it pays for its orders, finishes what others left, and books
// what became of each, until its input ends.
func caller() error {
	var self, callers, orders int
	var life string
	if _, err := fmt.Sscan(os.Getenv(selfVariable), &self, &life, &callers, &orders); err != nil {
		return err
	}
	folder := os.Getenv(folderVariable)
	s := &shop{url: os.Getenv(urlVariable), life: strconv.Itoa(self) + "." + life}
	store, err := semelclient.OpenFileStore(filepath.Join(folder, "intents"))
	if err != nil {
		return err
	}
	if s.booked, err = os.OpenFile(filepath.Join(folder, "booked"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	if s.attempts, err = os.OpenFile(filepath.Join(folder, "attempts", s.life), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	s.client, err = semelclient.New(store, semelclient.Config{
		Transport: s.stamping(http.DefaultTransport), Policy: retry.Policy{Most: 2 * time.Second}, ObserveFunc: s.observe,
	})
	if err != nil {
		return err
	}
	known, err := bookings(folder)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var work sync.WaitGroup
	var faults errorList
	todo := make(chan int)
	for range working {
		work.Go(func() {
			for order := range todo {
				faults.add(s.pay(ctx, order))
			}
		})
	}
	work.Go(func() { faults.add(s.recovering(ctx)) })
	go func() {
		defer close(todo)
		for order := self; order < orders; order += callers {
			if len(known[bodyOf(order)]) > 0 {
				continue
			}
			select {
			case todo <- order:
			case <-ctx.Done():
				return
			}
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	cancel()
	work.Wait()
	return errors.Join(err, faults.join(), store.Close())
}

func bodyOf(order int) string { return fmt.Sprintf(`{"order":%d}`, order) }

// pay pays for an order. Its key is drawn from the order, so that a second Intend
// of the same order is told from the first: then it is Recover's.
func (s *shop) pay(ctx context.Context, order int) error {
	key := http.Header{"Idempotency-Key": {fmt.Sprintf(`"order %d"`, order)}}
	in, err := s.client.Intend(ctx, http.MethodPost, s.url+"/payments", key, []byte(bodyOf(order)))
	if errors.Is(err, semelclient.ErrIntentKnown) {
		return nil
	}
	if err != nil {
		return err
	}
	r := s.client.Do(ctx, in)
	if ctx.Err() != nil || !r.Settled() {
		return nil // Recover goes on
	}
	if err := s.book(r); err != nil {
		return err
	}
	return s.client.Forget(ctx, in.Key)
}

func (s *shop) recovering(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.client.Recover(ctx, s.book); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	return nil
}

// book writes an outcome down, in one write of one line.
func (s *shop) book(r semelclient.Result) error {
	if !r.Settled() {
		return nil
	}
	_, err := fmt.Fprintf(s.booked, "%s\t%s\t%s\n", r.Intent.Body, r.Outcome, r.Reason)
	return err
}

func (s *shop) observe(a semelclient.Attempt) {
	fmt.Fprintf(s.attempts, "%d\n", a.Written)
}

// stamping is next with a number in each request that is handed to it.
func (s *shop) stamping(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		req = req.Clone(req.Context())
		req.Header.Set(tryHeader, s.life+"/"+strconv.FormatInt(s.tries.Add(1), 10))
		return next.RoundTrip(req)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// bookings returns what was booked for each body.
func bookings(folder string) (map[string][]string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "booked"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	booked := make(map[string][]string)
	for line := range strings.Lines(string(text)) {
		body, outcome, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		booked[body] = append(booked[body], outcome)
	}
	return booked, nil
}

// errorList collects the faults of several goroutines.
type errorList struct {
	mu   sync.Mutex
	list []error
}

func (l *errorList) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.list = append(l.list, err)
		fmt.Fprintln(os.Stderr, err)
	}
}

func (l *errorList) join() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.list...)
}
