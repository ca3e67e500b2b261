package semelclient_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// publicFaults are the kinds of fault that clients had in public, where each was
// reported, and the test that tries it. The other kinds are those of services:
// internal/integration has them.
var publicFaults = []struct {
	id, kind, seen string
	test           func(*testing.T)
}{
	{"C81", "transport-auto-retry", "golang/go#19943", TestTransportAutoRetry},
	{"C83", "proxy-retry", "istio/istio#13851", TestProxyRetry},
	{"C85", "h2-refused", "golang/go#20985", TestH2Refused},
	{"C87", "client-key-stability", "stripe/stripe-php#637", TestClientKeyStability},
	{"C89", "client-key-derivation", "Adyen/adyen-commercetools#1305", TestClientKeyDerivation},
	{"C91", "retry-body", "okta/okta-sdk-golang#204", TestRetryBody},
	{"C93", "retry-eligibility", "go-resty/resty#777", TestRetryEligibility},
	{"C95", "retry-on-conflict", "beam-community/stripity-stripe#564", TestRetryOnConflict},
	{"C97", "retry-timing", "DouglasdeMoura/chroncal#105", TestRetryTiming},
	{"C99", "retry-context", "axiomhq/axiom-go#281", TestRetryContext},
	{"C101", "redirect", "feross/simple-get#46", TestRedirect},
}

func TestEachPublicFaultOfClientsIsTried(t *testing.T) {
	t.Parallel()
	for i, f := range publicFaults {
		assert.Equal(t, f.id, fmt.Sprintf("C%d", 81+2*i), "none is left out")
		name := runtime.FuncForPC(reflect.ValueOf(f.test).Pointer()).Name()
		_, name, _ = strings.Cut(name, ".Test")
		assert.Equal(t, strings.ToLower(name), strings.ReplaceAll(f.kind, "-", ""), "the test of %s (%s)", f.id, f.seen)
	}
	assert.Equal(t, publicFaults[len(publicFaults)-1].id, "C101", "the last one")
}
