package service

import (
	"bytes"
	"io"
	"net/http"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// understood refuses a payment that cannot be understood before its key is
// claimed, so that the corrected request may carry the same key. What Semel
// refuses by itself, a missing key or a body over the limit, is left to it.
func understood(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(payments.HeaderKey) == "" {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, payments.MaxBody+1))
		if err == nil && len(body) <= payments.MaxBody {
			if _, problem := payments.ParseOrder(r.Header.Get("Content-Type"), body); problem != nil {
				problem.Write(w)
				return
			}
		}
		var after io.Reader = r.Body
		if err != nil {
			after = broken{err} // net/http reports it once, and says EOF from then on
		}
		r.Body = rest{io.MultiReader(bytes.NewReader(body), after), r.Body}
		next.ServeHTTP(w, r)
	})
}

// rest is a body of which a part has been read already.
type rest struct {
	io.Reader
	io.Closer
}

// broken is where a body broke off.
type broken struct{ err error }

// Read says why.
func (b broken) Read([]byte) (int, error) { return 0, b.err }
