package semelhttp

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/httpfield"
)

// notSaved are the reply headers that are never replayed, beside those of one
// connection: those of one moment, of one session, and those that are written
// anew.
var notSaved = map[string]bool{
	"Age":                       true,
	"Date":                      true,
	"Authentication-Info":       true,
	"Authorization":             true,
	"Proxy-Authenticate":        true,
	"Proxy-Authentication-Info": true,
	"Proxy-Authorization":       true,
	"Set-Cookie":                true,
	"Set-Cookie2":               true,
	"Www-Authenticate":          true,
	"Content-Length":            true,
	headerReplayed:              true,
	headerOutcome:               true,
}

// headerMaps are for the snapshots that the recorder takes. A handler never
// holds one, and a store copies what it keeps.
var headerMaps = sync.Pool{New: func() any { return make(http.Header) }}

// changes compares the header that a handler leaves with the one it received,
// which belongs to the layers outside and is not saved (R26).
func changes(before, after http.Header) (changed http.Header, removed []string) {
	changed, _ = headerMaps.Get().(http.Header)
	for name, values := range after {
		if old, ok := before[name]; !ok || !slices.Equal(old, values) {
			changed[name] = values
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			removed = append(removed, name)
		}
	}
	return changed, removed
}

// savedHeader returns what of changed is replayed. It is changed itself if
// that is all of it.
func savedHeader(changed http.Header) semel.Header {
	listed := connectionListed(changed)
	drop := func(name string, values []string) bool {
		if !httpfield.IsToken(name) || len(values) == 0 {
			return true // net/http sends nothing for it
		}
		name = http.CanonicalHeaderKey(name)
		return notSaved[name] || httpfield.IsOfConnection(name) || strings.HasPrefix(name, http.TrailerPrefix) || slices.Contains(listed, name)
	}
	for name, values := range changed {
		if drop(name, values) {
			saved := maps.Clone(changed)
			maps.DeleteFunc(saved, drop)
			return semel.Header(saved)
		}
	}
	return semel.Header(changed)
}

// connectionListed returns the fields that Connection names as belonging to
// this connection.
func connectionListed(h http.Header) []string {
	var names []string
	for name := range httpfield.Members(h["Connection"]) {
		names = append(names, http.CanonicalHeaderKey(name))
	}
	return names
}

// trailers returns the fields of h that go out after the body: those that the
// header announced, and those with net/http's prefix.
func trailers(h, announced http.Header) http.Header {
	var found http.Header
	add := func(name string, values []string) {
		if found == nil {
			found = http.Header{}
		}
		found[name] = values
	}
	for name := range httpfield.Members(announced["Trailer"]) {
		name = http.CanonicalHeaderKey(name)
		if values, ok := h[name]; ok {
			add(name, values)
		}
	}
	for name, values := range h {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			add(name, values)
		}
	}
	return found
}

// bodyAllowed reports whether a reply with this status may have a body
// (RFC 9110 section 6.4.1).
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// acceptable reports whether a client with the request header asked can read
// a saved reply (RFC 9110 section 12.5.3). One that says nothing can read
// anything, unless the encoding was chosen by what the first client said.
func acceptable(asked http.Header, saved semel.Header) bool {
	lines, said := asked["Accept-Encoding"]
	if !said && !varies(saved) {
		return true
	}
	for coding := range httpfield.Members(saved["Content-Encoding"]) {
		if coding != "identity" && !accepts(lines, coding) {
			return false
		}
	}
	return true
}

func varies(saved semel.Header) bool {
	for field := range httpfield.Members(saved["Vary"]) {
		if field == "*" || field == "accept-encoding" {
			return true
		}
	}
	return false
}

// accepts reports whether the lines of Accept-Encoding allow a coding: by its
// own name, or else by the star.
func accepts(lines []string, coding string) bool {
	star := false
	for entry := range httpfield.Members(lines) {
		name, weight, _ := strings.Cut(entry, ";")
		name = strings.TrimPrefix(httpfield.Trim(name), "x-")
		switch {
		case name == strings.TrimPrefix(coding, "x-"):
			return weighs(weight)
		case name == "*":
			star = weighs(weight)
		}
	}
	return star
}

// weighs reports whether a weight is above zero; none is 1.
func weighs(weight string) bool {
	_, q, found := strings.Cut(weight, "q=")
	if !found {
		return true
	}
	value, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
	return err == nil && value > 0
}
