package semelhttp_test

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/memhttp"
	"github.com/semel-dev/semel/semelhttp"
)

func TestFailOpen(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")

	t.Run("While the store is down the handler gets the whole request and the server's own ResponseWriter", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			s.store.set(func(s *faultyStore) { s.beginErr = down })
			var leaked io.Reader
			srv := serve(t, proto, s.protect(t, semelhttp.Route{FailOpen: true}, func(w http.ResponseWriter, r *http.Request) {
				_, recorded := semel.OperationFrom(r.Context())
				body, err := io.ReadAll(r.Body)
				assert.NoError(t, err)
				leaked = r.Body
				fmt.Fprintf(w, "%t %d %s", recorded, r.ContentLength, body)
			}))
			for range 2 {
				got := post(t, srv.Client(), srv.URL, "k1", "order")
				assert.Equal(t, got.outcome(), "unprotected")
				assert.Equal(t, got.text, "false 5 order")
				_, err := leaked.Read(make([]byte, 1))
				assert.ErrorIs(t, err, http.ErrBodyReadAfterClose)
			}
		})
	})

	t.Run("Its bytes are given back, and its uploads removed", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{mw: semelhttp.Config{MaxRequestBody: 20_000, MaxReplyBody: 1000, ByteBudget: 20_000}})
		s.store.set(func(s *faultyStore) { s.beginErr = down })
		var file string
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{FailOpen: true}, func(_ http.ResponseWriter, r *http.Request) {
			assert.NoError(t, r.ParseMultipartForm(1))
			f, err := r.MultipartForm.File["photo"][0].Open()
			assert.NoError(t, err)
			defer f.Close()
			if named, ok := f.(interface{ Name() string }); ok {
				file = named.Name()
			}
		}))
		var body strings.Builder
		form := multipart.NewWriter(&body)
		part, err := form.CreateFormFile("photo", "photo.png")
		assert.NoError(t, err)
		io.WriteString(part, strings.Repeat("x", 15_000))
		assert.NoError(t, form.Close())
		for range 3 {
			got := post(t, srv.Client(), srv.URL(), "k1", body.String(), "Content-Type", form.FormDataContentType())
			assert.Equal(t, got.outcome(), "unprotected")
			assert.True(t, file != "" && !exists(file), "%q is gone", file)
		}
	})

	t.Run("It is logged at warn, with the store's error", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var log lines
			s := newService(t, settings{mw: semelhttp.Config{Logger: log.logger()}})
			log.take() // that the store is in memory
			s.store.set(func(s *faultyStore) { s.beginErr = down })
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{FailOpen: true}, s.created))
			post(t, srv.Client(), srv.URL(), "k1", "")
			synctest.Wait()
			assert.Equal(t, log.take(), "level=WARN msg=\"semel: request\" route=orders outcome=unprotected idempotency_key=6ab9f1eb8f7d "+
				"scope_digest=c6fb6928ae56 duration=0s error=\"semel: the store cannot be reached: connection refused\"\n")
		})
	})

	t.Run("What was checked before the store is asked is refused all the same", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		s.store.set(func(s *faultyStore) { s.beginErr = down })
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{FailOpen: true, MaxRequestBody: 4}, s.created))
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "", "").StatusCode, http.StatusBadRequest)
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "", "X-Caller", "nobody").StatusCode, http.StatusForbidden)
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "12345").StatusCode, http.StatusRequestEntityTooLarge)
		assert.Equal(t, s.runCount(), 0)
	})

	t.Run("A saved reply that may not be shown is no reason to run, whatever the refusal looks like", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{
			FailOpen:     true,
			BeforeReplay: func(*http.Request, semel.Record) error { return semel.ErrStoreUnavailable },
		}, s.created))
		post(t, srv.Client(), srv.URL(), "k1", "")
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").StatusCode, http.StatusForbidden)
		assert.Equal(t, s.runCount(), 1)
	})

	t.Run("A handler past its deadline is left to itself", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, settings{guard: semel.Config{HandlerDeadline: time.Second}})
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{FailOpen: true}, func(http.ResponseWriter, *http.Request) {
				s.ran()
				time.Sleep(time.Minute)
			}))
			assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").outcome(), "unknown")
			time.Sleep(time.Hour)
			assert.Equal(t, s.runCount(), 1)
		})
	})

	t.Run("A worker that was replaced, and cannot ask by whom, does not run again", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, settings{})
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{FailOpen: true}, func(_ http.ResponseWriter, r *http.Request) {
				if s.ran() > 1 { // the successor
					return
				}
				s.store.set(func(s *faultyStore) { s.extend, s.get = down, down })
				<-r.Context().Done() // the lease has ended
				time.Sleep(time.Minute)
			}))
			first := make(chan reply)
			go func() { first <- post(t, srv.Client(), srv.URL(), "k1", "") }()
			time.Sleep(45 * time.Second)
			assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").outcome(), "executed")
			replaced := <-first
			assert.Equal(t, replaced.StatusCode, http.StatusServiceUnavailable)
			assert.Equal(t, replaced.outcome(), "unknown", "it ran")
			assert.Equal(t, s.runCount(), 2)
		})
	})
}
