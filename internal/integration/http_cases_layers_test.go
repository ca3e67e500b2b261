package integration

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// What stands around the middleware: TLS that tells who the client is, a layer
// that compresses, and a server that streams.

// compressor is a layer that compresses what the client can read and nobody
// has compressed yet, as the usual ones do.
func compressor(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		z := &zipping{ResponseWriter: w, wanted: strings.Contains(strings.ReplaceAll(r.Header.Get("Accept-Encoding"), "gzip;q=0", ""), "gzip")}
		defer z.close()
		next.ServeHTTP(z, r)
	})
}

// zipping is the writer of a compressor.
type zipping struct {
	http.ResponseWriter

	wanted bool
	zip    *gzip.Writer
}

// Unwrap lets the server's own abilities be found.
func (z *zipping) Unwrap() http.ResponseWriter { return z.ResponseWriter }

// WriteHeader decides whether to compress.
func (z *zipping) WriteHeader(status int) {
	h := z.Header()
	if z.wanted && h.Get("Content-Encoding") == "" {
		h.Set("Content-Encoding", "gzip")
		h.Del("Content-Length")
		z.zip = gzip.NewWriter(z.ResponseWriter)
	}
	z.ResponseWriter.WriteHeader(status)
}

// Write compresses.
func (z *zipping) Write(b []byte) (int, error) {
	if z.zip == nil {
		return z.ResponseWriter.Write(b)
	}
	return z.zip.Write(b)
}

func (z *zipping) close() {
	if z.zip != nil {
		z.zip.Close() //nolint:errcheck // the client sees it.
	}
}

// decoded is the text of an answer as its client reads it.
func decoded(t *testing.T, a answer) string {
	t.Helper()
	codings := a.Header.Values("Content-Encoding")
	if len(codings) == 0 {
		return a.text
	}
	assert.Equal(t, codings, []string{"gzip"})
	plain, err := gzip.NewReader(strings.NewReader(a.text))
	assert.NoError(t, err)
	text, err := io.ReadAll(plain)
	assert.NoError(t, err)
	return string(text)
}

func layerCases(all *httpCases) {
	all.add("tenant-scope: Two client certificates with one key are two callers", clientCertificates)
	for _, proto := range []string{overHTTP1, overHTTP2} {
		all.add("framing-headers: A layer that compresses outside gives each client what it reads, over "+proto, func(t *testing.T, on shopWay) {
			compressedOutside(t, on, proto)
		})
	}
	all.add("compression: A layer outside does not compress a second time", compressedTwice)
	all.add("streaming: A reply of 200 MB is in nobody's memory", exported)
}

func compressedOutside(t *testing.T, on shopWay, proto string) {
	s := newShop(t, on, shopSettings{})
	srv := serve(t, proto, compressor(s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		if _, sold := s.sell(t, w, r); !sold {
			return
		}
		w.Header().Set("Content-Length", "5")
		io.WriteString(w, "hello")
	})))
	for i, c := range []struct {
		accepted string
		coding   string
		length   int64 // -1: not known
	}{
		{"gzip", "gzip", -1},
		{"identity", "", 5},
		{"gzip;q=0", "", 5},
		{"gzip", "gzip", -1},
	} {
		got := send(t, srv, ask{}.with("Accept-Encoding", c.accepted))
		want := "200 replayed"
		if i == 0 {
			want = "200 executed"
		}
		assert.Equal(t, got.told(), want, "try %d", i)
		assert.Equal(t, got.Header.Get("Content-Encoding"), c.coding, "try %d", i)
		assert.Equal(t, decoded(t, got), "hello", "try %d", i)
		assert.Equal(t, got.Header.Values("Vary"), []string{"Accept-Encoding"}, "try %d", i)
		if c.length >= 0 {
			assert.Equal(t, got.ContentLength, c.length, "try %d", i)
		} else {
			assert.True(t, got.ContentLength != 5, "try %d: the length is not that of the plain text", i)
		}
	}
	rec, err := s.guard.Get(t.Context(), shopScope, "K1")
	assert.NoError(t, err)
	assert.Equal(t, string(rec.Reply.Body), "hello", "what is saved")
	for _, name := range []string{"Content-Encoding", "Content-Length", "Vary"} {
		assert.True(t, rec.Reply.Header[name] == nil, "%s is saved", name)
	}
	s.sold(t, 1)
}

func compressedTwice(t *testing.T, on shopWay) {
	s := newShop(t, on, shopSettings{})
	srv := serve(t, overHTTP1, compressor(s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		if _, sold := s.sell(t, w, r); !sold {
			return
		}
		var body bytes.Buffer
		zip := gzip.NewWriter(&body)
		io.WriteString(zip, "hello")
		assert.NoError(t, zip.Close())
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(body.Bytes())
	})))
	for _, want := range []string{"200 executed", "200 replayed"} {
		got := send(t, srv, ask{}.with("Accept-Encoding", "gzip"))
		assert.Equal(t, got.told(), want)
		assert.Equal(t, decoded(t, got), "hello")
	}
	// The answer in its place is plain, and the layer may compress it.
	refused := send(t, srv, ask{}.with("Accept-Encoding", "identity"))
	assert.Equal(t, refused.told(), "406 reply-not-kept")
	assert.Contains(t, decoded(t, refused), `"code":"reply-not-acceptable"`)
	s.sold(t, 1)
}

// exported takes a reply of exportSize from a process of its own, and asks
// that process how much memory it has allocated for it in all.
func exported(t *testing.T, on shopWay) {
	s := newShop(t, on, shopSettings{})
	p := startShop(t, s)
	allocations := func() int64 {
		n, err := strconv.ParseInt(send(t, p.srv, ask{method: http.MethodGet, target: "/allocated"}).text, 10, 64)
		assert.NoError(t, err)
		return n
	}
	before := allocations()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.srv.url+"/exports", nil)
	assert.NoError(t, err)
	req.Header.Set("Idempotency-Key", "K1")
	resp, err := p.srv.client.Do(req)
	assert.NoError(t, err)
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	assert.NoError(t, err)
	assert.Equal(t, n, exportSize, "bytes of the reply")
	const most = semel.DefaultMaxReplyBody + 10<<20
	if spent := allocations() - before; spent > most {
		t.Errorf("allocated %d bytes for a reply of %d, the most is %d", spent, exportSize, most)
	}
	assert.Equal(t, send(t, p.srv, ask{target: "/exports"}.with("Content-Type")).told(), "409 reply-not-kept")
}

// authority signs the certificates of one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue makes a certificate in the name, signed by the authority, or by itself
// where there is none.
func issue(t *testing.T, by *authority, name string, serial int64) (authority, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	assert.NoError(t, err)
	asked := &x509.Certificate{
		SerialNumber:          big.NewInt(serial),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		IsCA:                  by == nil,
		BasicConstraintsValid: true,
	}
	if by == nil {
		by = &authority{cert: asked, key: key}
	}
	signed, err := x509.CreateCertificate(rand.Reader, asked, by.cert, &key.PublicKey, by.key)
	assert.NoError(t, err)
	cert, err := x509.ParseCertificate(signed)
	assert.NoError(t, err)
	return authority{cert: cert, key: key}, tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}
}

// verifiedCaller takes the caller from the certificate that TLS has verified.
func verifiedCaller(r *http.Request) (string, error) {
	if len(r.TLS.VerifiedChains) == 0 {
		return "", errors.New("no certificate")
	}
	return "customer:" + r.TLS.VerifiedChains[0][0].Subject.CommonName, nil
}

// as is a client of the server that shows cert, whoever the server trusts. The
// zero certificate is none.
func (s server) as(t *testing.T, cert tls.Certificate) server {
	t.Helper()
	base, ok := s.client.Transport.(*http.Transport)
	assert.True(t, ok, "the server's client has no http.Transport")
	transport := base.Clone()
	transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	t.Cleanup(transport.CloseIdleConnections)
	return server{s.url, &http.Client{Transport: transport}}
}

func clientCertificates(t *testing.T, on shopWay) {
	ca, _ := issue(t, nil, "the bank's customers", 1)
	_, p1 := issue(t, &ca, "p1", 2)
	_, p1Renewed := issue(t, &ca, "p1", 3)
	_, p2 := issue(t, &ca, "p2", 4)
	_, forged := issue(t, nil, "p1", 2)

	s := newShop(t, on, shopSettings{caller: verifiedCaller})
	srv := serveWith(t, overHTTP1, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		owner, err := verifiedCaller(r)
		assert.NoError(t, err)
		if n, sold := s.sell(t, w, r); sold {
			fmt.Fprintf(w, "%d of %s", n, owner)
		}
	}), &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool(ca.cert)})
	for _, c := range []struct {
		who  string
		srv  server
		told string
		text string
	}{
		{"p1", srv.as(t, p1), "200 executed", "1 of customer:p1"},
		{"p2", srv.as(t, p2), "200 executed", "2 of customer:p2"},
		{"p1 again", srv.as(t, p1), "200 replayed", "1 of customer:p1"},
		{"p1 with its next certificate", srv.as(t, p1Renewed), "200 replayed", "1 of customer:p1"},
		{"p2 again", srv.as(t, p2), "200 replayed", "2 of customer:p2"},
	} {
		got := send(t, c.srv, ask{})
		assert.Equal(t, got.told(), c.told, c.who)
		assert.Equal(t, got.text, c.text, c.who)
	}
	nobody := send(t, srv.as(t, tls.Certificate{}), ask{})
	assert.Equal(t, nobody.told(), "403 released", "who has no certificate")
	assert.Contains(t, nobody.text, `"code":"scope-missing"`)
	_, err := try(t.Context(), srv.as(t, forged), ask{})
	assert.True(t, err != nil, "who signed the name itself gets no connection")
	s.sold(t, 2)
}

func pool(certs ...*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, cert := range certs {
		p.AddCert(cert)
	}
	return p
}
