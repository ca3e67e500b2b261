package fingerprint

import (
	"encoding/hex"
	"net/textproto"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/httpfield"
)

// version names the rules that give a meaning. Rules that change get a new
// one, and the old stay loadable while records carry them (R21).
const version = "v1"

// Config says what a request is made of beyond method, target, route, content
// type, content encoding and body. The zero value adds nothing.
type Config struct {
	// Host makes the Host part of the request, for a service that answers
	// differently under its names.
	Host bool
	// Headers names the headers that choose whose resource is meant or what
	// is done to it, such as X-Account-Id or If-Match. Order and case do not
	// matter. Credentials are refused: they change between tries, and belong
	// to the scope (R4). So are the fields of one connection or one moment,
	// which do not come through, or are not those of the first try.
	Headers []string
}

// Request is what a fingerprint is computed from. Nothing in it is changed or
// kept.
type Request struct {
	Method string
	// Target is the escaped path and the query as received; an
	// http.Request's RequestURI will do. Of an absolute form (RFC 9112
	// section 3.2.2) scheme and authority are left out.
	Target string
	Route  string // the name of the route, so that a moved route is noticed
	Host   string
	// Header is the request's header with canonical names, as net/http
	// has it. Content-Type, Content-Encoding and Config.Headers are read.
	Header map[string][]string
	Body   []byte // whole, never a prefix
}

// Policy computes fingerprints under one set of rules. It is safe for
// concurrent use.
type Policy struct {
	id      string
	host    bool
	headers []string // canonical, sorted, each once
}

// New returns the policy for cfg. Errors match semel.ErrConfig.
func New(cfg Config) (*Policy, error) {
	p := &Policy{host: cfg.Host}
	for _, name := range cfg.Headers {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if problem := headerProblem(canonical); problem != "" {
			return nil, semel.NewError(semel.CodeConfig, nil, "Headers has %q: %s", name, problem)
		}
		p.headers = append(p.headers, canonical)
	}
	slices.Sort(p.headers)
	p.headers = slices.Compact(p.headers)
	p.id = p.newID()
	return p, nil
}

// headerProblem says why a header cannot be part of a request, or "".
func headerProblem(canonical string) string {
	switch canonical {
	case "Authorization", "Proxy-Authorization", "Cookie":
		return "a credential changes between tries; it belongs to the scope"
	case "Host":
		return "the server takes it out of the header; set Host instead"
	case "Content-Length":
		return "it is the framing of one try; the body itself is part of the request"
	case "Date":
		return "it changes between tries"
	}
	switch {
	case httpfield.IsOfConnection(canonical):
		return "it belongs to one connection (RFC 9110 section 7.6.1), and a retry comes over another"
	case !httpfield.IsToken(canonical):
		return "it is not a header name (RFC 9110 section 5.1)"
	}
	return ""
}

// ID names the rules and the configuration, for example "v1-0f3c9a52". It is
// the same in every process, and saved with each record.
func (p *Policy) ID() string { return p.id }

func (p *Policy) newID() string {
	d := getDigester()
	defer d.put()
	d.field("semel/fingerprint/policy")
	d.field(version)
	d.flag(p.host)
	d.list(p.headers)
	sum := d.sum()
	return version + "-" + hex.EncodeToString(sum[:4])
}

// Of returns the fingerprint of r.
func (p *Policy) Of(r Request) semel.Fingerprint {
	d := getDigester()
	defer d.put()
	r.Target = originForm(r.Target)
	sent := d.sumOf(r.Body)
	content := d.meaningOf(r, sent)

	d.field("semel/fingerprint/raw")
	p.head(d, r)
	d.list(r.Header["Content-Type"])
	d.list(r.Header["Content-Encoding"])
	d.digest(sent)
	raw := d.sum()

	d.field("semel/fingerprint/meaning")
	r.Host = strings.ToLower(r.Host)
	p.head(d, r)
	d.content(r, content)
	return semel.Fingerprint{Raw: raw, Meaning: d.sum(), Policy: p.id}
}

// head adds what both digests cover. It names the headers it covers, so that
// the digests of two policies are never equal by chance.
func (p *Policy) head(d *digester, r Request) {
	d.field(r.Method)
	d.field(r.Target)
	d.field(r.Route)
	d.flag(p.host)
	if p.host {
		d.field(r.Host)
	}
	d.number(len(p.headers))
	for _, name := range p.headers {
		d.field(name)
		d.list(r.Header[name])
	}
}

// originForm takes scheme and authority from a target in absolute form.
func originForm(target string) string {
	if strings.HasPrefix(target, "/") {
		return target
	}
	_, rest, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	i := strings.IndexAny(rest, "/?")
	switch {
	case i < 0:
		return "/"
	case rest[i] == '?':
		return "/" + rest[i:]
	}
	return rest[i:]
}
