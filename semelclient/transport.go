package semelclient

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotencykey"
)

// RoundTripper returns an http.RoundTripper for programs that have an
// http.Client: http.Client{Transport: client.RoundTripper()}.
//
// POST and PATCH, and whatever else has a key, become intents: they get a key
// unless they have one, are stored, and are sent until their outcome is known. The
// response is the last one that came. If none did, or if the outcome is unknown
// and the response is a success, the error is an *OutcomeError. An intent whose
// outcome is known is forgotten, since nobody would ask for it again; one that is
// Unknown stays for Recover.
//
// A body is read whole before the first byte leaves, and refused beyond
// Config.MaxBody. Credentials in the request's headers are sent and not stored, so
// a Client that recovers such intents needs Config.AuthorizeFunc. Redirects are the
// http.Client's; one that would carry the key to another origin is refused.
//
// All other requests are passed to Config.Transport as they are, once. So is an
// attempt of another Client, whose Transport this one is: one of the two retries.
func (c *Client) RoundTripper() http.RoundTripper { return roundTripper{client: c} }

type roundTripper struct{ client *Client }

// RoundTrip implements http.RoundTripper.
func (rt roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	c := rt.client
	lines := keyLines(req.Header, c.cfg.KeyHeader)
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodConnect:
		return c.cfg.Transport.RoundTrip(withoutKey(req, lines, c.cfg.KeyHeader))
	case http.MethodPost, http.MethodPatch:
	default:
		if len(lines) == 0 {
			return c.cfg.Transport.RoundTrip(req)
		}
	}
	if key, err := idempotencykey.Parse(lines, false); err == nil && isAttempt(req.Context(), key) {
		return c.cfg.Transport.RoundTrip(req)
	}
	body, err := readBody(req, c.cfg.MaxBody)
	if err != nil {
		return nil, err
	}
	if from := req.Response; from != nil && from.Request != nil && origin(from.Request.URL) != origin(req.URL) {
		return nil, semel.NewError(CodeIntentInvalid, nil, "redirected from %s to %s: the key means nothing there, so it is not sent",
			origin(from.Request.URL), origin(req.URL))
	}
	return rt.roundTrip(req, body)
}

func (rt roundTripper) roundTrip(req *http.Request, body []byte) (*http.Response, error) {
	c, ctx := rt.client, req.Context()
	header, own := splitCredentials(req)
	in, err := c.newIntent(req.Method, withoutFragment(req.URL), header, body)
	if err != nil {
		return nil, err
	}
	t := &task{in: in, own: own}
	switch stored, err := c.add(ctx, in); {
	case errors.Is(err, ErrIntentKnown):
		t.strict = true // the caller sends it again
	case err != nil:
		return nil, err
	default:
		t.in = stored
	}
	done := c.do(ctx, t)
	if errors.Is(done.Err, ErrIntentKnown) {
		return nil, invalid("the key %s belongs to another request, which is still in the store", in.Key)
	}
	if done.Settled() {
		if err := c.Forget(ctx, in.Key); err != nil {
			done.Err = err // and Recover tells it once more
		}
	}
	resp := done.response
	if resp == nil || !done.Settled() && isDone(resp.StatusCode) {
		return nil, &OutcomeError{Result: done.Result}
	}
	resp.Request = req
	resp.Body = io.NopCloser(replyBody(done.Result))
	return resp, nil
}

// replyBody reads a kept body, and says so where it was not kept whole.
func replyBody(r Result) io.Reader {
	body := io.Reader(bytes.NewReader(r.Body))
	if r.Truncated {
		return io.MultiReader(body, cutOff{})
	}
	return body
}

// cutOff is the end of a body that was not kept whole.
type cutOff struct{}

// Read returns an error.
func (cutOff) Read([]byte) (int, error) {
	return 0, semel.NewError(CodeNoAnswer, io.ErrUnexpectedEOF, "the reply is longer than Config.MaxReply")
}

// keyLines are the values of the key's header, however its name is written.
func keyLines(h http.Header, name string) []string {
	var lines []string
	for written, values := range h {
		if http.CanonicalHeaderKey(written) == name {
			lines = append(lines, values...)
		}
	}
	return lines
}

// withoutKey takes the key off a request that needs none: http.Client keeps it on
// the GET that follows a redirect.
func withoutKey(req *http.Request, lines []string, name string) *http.Request {
	if len(lines) == 0 || req.Response == nil {
		return req
	}
	req = req.Clone(req.Context())
	req.Header.Del(name)
	return req
}

// readBody reads and closes the body of a request, which has to be sent again
// byte for byte.
func readBody(req *http.Request, most int64) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	if req.ContentLength > most {
		return nil, invalid("the body has %d bytes; the most that is kept to be sent again is Config.MaxBody, %d", req.ContentLength, most)
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, most+1))
	switch {
	case err != nil:
		return nil, semel.NewError(CodeIntentInvalid, err, "the body cannot be read")
	case int64(len(body)) > most:
		return nil, invalid("the body is longer than what is kept to be sent again, Config.MaxBody, %d bytes", most)
	case req.ContentLength > 0 && int64(len(body)) != req.ContentLength:
		return nil, invalid("the body has %s, and ContentLength says %d", count(len(body), "byte"), req.ContentLength)
	}
	return body, nil
}

// splitCredentials returns a request's headers without, and with only, what is
// not stored.
func splitCredentials(req *http.Request) (header, own http.Header) {
	header, own = make(http.Header), make(http.Header)
	for name, values := range req.Header {
		name = http.CanonicalHeaderKey(name)
		header[name] = append(header[name], values...)
	}
	for _, name := range credentials {
		if values := header[name]; values != nil {
			own[name] = values
			delete(header, name)
		}
	}
	for _, name := range ofTransport {
		delete(header, name)
	}
	if req.Host != "" && req.Host != req.URL.Host {
		header.Set("Host", req.Host)
	}
	return header, own
}

func withoutFragment(u *url.URL) string {
	plain := *u
	plain.Fragment, plain.RawFragment, plain.User = "", "", nil
	return plain.String()
}
