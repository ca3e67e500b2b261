// Package shop is the page of the demo: three tills side by side, one that
// sends no idempotency key, one whose key is looked up first and saved later,
// and one with Semel behind it; with each the money that the bank took and a
// diagram of what happened, drawn from the log lines of the processes.
//
// The page shows what a client can know and what only the bank knows. It says
// "no answer" when there was none, never "failed". It works without
// JavaScript, where the server sends the payment, and with it, where the
// browser does; both go through the front's public address. Each payment brings
// along the fault that its reader chose, in [payments.HeaderFault], so that two
// readers do not take each other's, nor one that a script has armed.
//
// A second page, /checkout, is one client and no comparison: it pays through the
// module that package js has for pages of one's own.
//
// It promises nothing about money: that is the payment service's work. The
// other two tills are wrong on purpose.
//
// # What the front provides
//
// The front mounts the handler at "/" and answers, at the same address, POST
// at the doors and everything under /demo/. A payment carries its order in
// [payments.HeaderOrder]; that is what the ledger counts. GET /demo/changes
// says that something has changed; the page then fetches /shop/live, which is
// rendered by the same templates as the page.
//
// Faults must never meet "/", "/shop/" or "/demo/". Whoever serves the front
// has to close every connection after its answer (http.Server.SetKeepAlivesEnabled(false)):
// a browser sends a POST again by itself when a kept connection dies without
// an answer, and the page could then not tell what it sent.
package shop

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments/client"
	"github.com/semel-dev/semel/cmd/examples/payments/crowd"
	"github.com/semel-dev/semel/js"
)

// DefaultAnswerWithin is how long a till waits for an answer unless
// [Config.AnswerWithin] says otherwise: as long as a shopper of the crowd.
const DefaultAnswerWithin = crowd.Patience

// policy lets the page load its own files, talk to its own address, and
// nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// assets are the page's template and the files it loads.
//
//go:embed assets
var assets embed.FS

// Config says where the page finds the rest of the demo.
type Config struct {
	// Front is the address of the front, such as "http://127.0.0.1:8420".
	// Required.
	Front string
	// Store is what the payment service keeps its keys in, as the diagrams call
	// it. Default "store".
	Store string
	// AnswerWithin is how long a till waits for an answer before it says that
	// there was none. Zero means DefaultAnswerWithin.
	AnswerWithin time.Duration
}

// shop is the handler's state.
type shop struct {
	demo demo
	// guesses are what readers said before they saw.
	guesses *guesses
	page    *template.Template
	within  time.Duration
	// store is Config.Store.
	store string
	// lives are the renderings that pages fetch while things change.
	lives shared
}

// New returns the handler of the page and its files. It starts nothing and
// does not call the front. An error names the field of cfg that is wrong.
func New(cfg Config) (http.Handler, error) {
	base, err := url.Parse(cfg.Front)
	if err != nil {
		return nil, fmt.Errorf("shop: Config.Front: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("shop: Config.Front is %q, want an address such as http://127.0.0.1:8420", cfg.Front)
	}
	if cfg.AnswerWithin < 0 {
		return nil, fmt.Errorf("shop: Config.AnswerWithin is %v, want zero or more", cfg.AnswerWithin)
	}
	if cfg.AnswerWithin == 0 {
		cfg.AnswerWithin = DefaultAnswerWithin
	}
	page, err := template.New("page").ParseFS(assets, "assets/*.html")
	if err != nil {
		return nil, fmt.Errorf("shop: the page's template: %w", err)
	}
	s := &shop{
		demo:    demo{client.New(cfg.Front), cfg.AnswerWithin},
		guesses: newGuesses(guessLimit),
		page:    page,
		within:  cfg.AnswerWithin,
		store:   cmp.Or(cfg.Store, store.String()),
	}
	return s.routes(), nil
}

// routes lists every address of the page.
func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.open)
	mux.HandleFunc("POST /shop/pay", s.submit)
	mux.Handle("GET /shop/pay", http.RedirectHandler("/", http.StatusSeeOther))
	mux.HandleFunc("GET /shop/live", s.live)
	mux.HandleFunc("GET /checkout", s.checkout)
	mux.HandleFunc("GET /checkout/receipt", s.receipt)
	mux.HandleFunc("GET /shop/semel.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, js.Files(), "semel.js")
	})
	for _, file := range []string{"shop.css", "diagram.css", "shop.js", "till.js", "checkout.js", "icon.svg", "vendor/htmx.min.js", "vendor/hx-sse.min.js"} {
		mux.HandleFunc("GET /shop/"+file, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, assets, "assets/"+file)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, http.StatusNotFound, "There is no page at "+r.URL.Path)
	})
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.refuse(w, http.StatusForbidden, "Nothing was sent: the order came from another site's page")
	}))
	return secured(guard.Handler(mux))
}

// secured sets the headers that every answer of the page carries.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// refuse renders the page that says why nothing was done.
func (s *shop) refuse(w http.ResponseWriter, status int, why string) {
	s.render(w, status, "refused.html", refusal{
		Status: status,
		Title:  http.StatusText(status),
		Reason: why,
	})
}

// refusal is what the error page shows.
type refusal struct {
	Status int
	Title  string
	Reason string
}

// render writes one template, or nothing of it when it fails.
func (s *shop) render(w http.ResponseWriter, status int, name string, data any) {
	body, err := s.rendered(name, data)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writePage(w, status, body)
}

// rendered is what render writes.
func (s *shop) rendered(name string, data any) ([]byte, error) {
	var body bytes.Buffer
	if err := s.page.ExecuteTemplate(&body, name, data); err != nil {
		return nil, fmt.Errorf("the page cannot be shown: %w", err)
	}
	return body.Bytes(), nil
}

func writePage(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	// A reader who has left cannot be told so.
	_, _ = w.Write(body)
}
