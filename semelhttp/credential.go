package semelhttp

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"

	"github.com/semel-dev/semel"
)

// minSecret is the shortest secret that AuthorizationHMAC accepts, in bytes.
const minSecret = 16

// AuthorizationHMAC returns a CredentialFunc that is HMAC-SHA-256 over the
// Authorization header, for services whose callers share one scope. The secret
// has at least 16 bytes, random ones, and must be the same in every process and
// over restarts: with another one every earlier record belongs to somebody else.
// Errors match semel.ErrConfig.
func AuthorizationHMAC(secret []byte) (CredentialFunc, error) {
	if len(secret) < minSecret {
		return nil, configError("secret", fmt.Sprintf("has %d bytes; at least %d random ones are needed", len(secret), minSecret))
	}
	secret = slices.Clone(secret)
	return func(r *http.Request) semel.Digest {
		mac := hmac.New(sha256.New, secret)
		for _, value := range r.Header["Authorization"] {
			mac.Write([]byte(value))
			mac.Write([]byte{0})
		}
		var d semel.Digest
		mac.Sum(d[:0])
		return d
	}, nil
}
