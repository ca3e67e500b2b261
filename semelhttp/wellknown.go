package semelhttp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/semel-dev/semel"
)

// document is what stands at WellKnownPath. Publishing it is a MUST of the draft
// (draft-ietf-httpapi-idempotency-key-header-07 section 2.5).
type document struct {
	Endpoints []endpoint `json:"endpoints"`
}

// endpoint is one route. Durations are in seconds, limits in bytes.
type endpoint struct {
	Methods      []string `json:"methods"`
	Path         string   `json:"path"`
	Header       string   `json:"header"`
	Required     bool     `json:"required"`
	KeySyntax    string   `json:"keySyntax"` // "sf-string" or "sf-string-or-bare"
	MaxKeyLength int      `json:"maxKeyLength"`
	Scope        string   `json:"scope"`
	Retention    int64    `json:"retention"`
	// ResumeWithin is 0 under hold, and null where there is no bound.
	ResumeWithin    *int64           `json:"resumeWithin"`
	Recovery        string           `json:"recovery"`
	Kept            kept             `json:"kept"`
	MaxRequestBody  int64            `json:"maxRequestBody"`
	MaxResponseBody int64            `json:"maxResponseBody"`
	StoreClass      semel.StoreClass `json:"storeClass"`
	// FailOpen says that requests run unprotected while the store is down.
	FailOpen bool `json:"failOpen"`
}

// kept says which replies are kept.
type kept struct {
	Classes              []string `json:"classes"`
	Except               []int    `json:"except"`
	ExceptWithRetryAfter []int    `json:"exceptWithRetryAfter"`
}

// WellKnown serves the rules of all protected routes, to be mounted at
// WellKnownPath, outside authentication.
func (m *Middleware) WellKnown() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		body, err := json.MarshalIndent(m.published(), "", "  ")
		if err != nil {
			http.Error(w, "the rules cannot be written", http.StatusInternalServerError)
			return
		}
		body = append(body, '\n')
		sum := sha256.Sum256(body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "public, max-age=300")
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	})
}

func (m *Middleware) published() document {
	m.mu.Lock()
	defer m.mu.Unlock()
	doc := document{Endpoints: []endpoint{}}
	for _, p := range m.routes {
		doc.Endpoints = append(doc.Endpoints, p.published())
	}
	return doc
}

func (p *protected) published() endpoint {
	m := p.mw
	e := endpoint{
		Methods:         p.route.Methods,
		Path:            p.route.Path,
		Header:          m.cfg.KeyHeader,
		Required:        !p.route.KeyOptional,
		KeySyntax:       "sf-string-or-bare",
		MaxKeyLength:    semel.MaxKeyLength,
		Scope:           m.cfg.PublishedScope,
		Retention:       int64(m.rules.Retention / time.Second),
		Recovery:        m.rules.Recovery.String(),
		MaxRequestBody:  p.route.MaxRequestBody,
		MaxResponseBody: p.route.MaxReplyBody,
		StoreClass:      m.rules.Class,
		FailOpen:        p.route.FailOpen,
	}
	if m.cfg.StrictKey {
		e.KeySyntax = "sf-string"
	}
	if m.rules.ResumeWithin != semel.Forever {
		seconds := int64(m.rules.ResumeWithin / time.Second)
		e.ResumeWithin = &seconds
	}
	except := slices.Concat(releasedStatuses, []int{statusClientClosedRequest}, p.route.NotApplied)
	slices.Sort(except)
	e.Kept = kept{
		Classes:              []string{"2xx", "3xx", "4xx"},
		Except:               slices.Compact(except),
		ExceptWithRetryAfter: passingStatuses,
	}
	return e
}
