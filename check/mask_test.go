package check

import (
	"net/http"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

func TestSecretsAreHiddenWhereverTheyStand(t *testing.T) {
	t.Parallel()
	r := &run{target: Target{KeyHeader: "X-Token-Key"}, proofs: map[string]bool{"X-Proof": true}}
	given := []Exchange{{
		URL: "http://joe:hunter2@localhost/pay?token=t0psecret&page=2",
		Header: http.Header{
			"Authorization": {"Bearer abcdef123456"}, "X-Access-Key": {"accesskey-1"}, "X-Signature": {"signed-by-me"},
			"X-Proof": {"proof-of-command"}, "X-Token-Key": {`"key-1"`}, "Accept": {"*/*"},
		},
		ReplyHeader: http.Header{"X-Echo": {"got abcdef123456"}, "Set-Cookie": {"s=1"}},
		ReplyBody:   []byte(`{"headers":{"Authorization":"Bearer abcdef123456","X-Proof":"proof-of-command"},"id":7}`),
		Err:         "no place called accesskey-1",
	}}
	got := r.masked(given)[0]
	assert.Equal(t, got.URL, "http://joe:***@localhost/pay?token=***&page=2")
	assert.Equal(t, got.Header, http.Header{
		"Authorization": {hidden}, "X-Access-Key": {hidden}, "X-Signature": {hidden},
		"X-Proof": {hidden}, "X-Token-Key": {`"key-1"`}, "Accept": {"*/*"},
	})
	assert.Equal(t, got.ReplyHeader, http.Header{"X-Echo": {"got " + hidden}, "Set-Cookie": {hidden}})
	assert.Equal(t, string(got.ReplyBody), `{"headers":{"Authorization":"***","X-Proof":"***"},"id":7}`)
	assert.Equal(t, got.Err, "no place called "+hidden)
	assert.Equal(t, given[0].Header.Get("Authorization"), "Bearer abcdef123456", "what was sent is not changed")
	assert.Equal(t, given[0].ReplyHeader.Get("X-Echo"), "got abcdef123456")
}

func TestAnAddressWithoutSecretsIsShownAsItIs(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://localhost:8080/a%2Fb?x=1&y", "http://joe@localhost/"} {
		assert.Equal(t, MaskedURL(address), address)
	}
}

func TestSettingsOutOfBoundsAreRefused(t *testing.T) {
	t.Parallel()
	good := Target{URL: "http://localhost:1/"}
	for says, c := range map[string]struct {
		change func(*Target)
		cfg    Config
	}{
		"Target.Method":             {change: func(t *Target) { t.Method = "GE T" }},
		"Target.KeyHeader":          {change: func(t *Target) { t.KeyHeader = "a b" }},
		"Target.TenantHeader":       {change: func(t *Target) { t.TenantHeader, t.Tenants = "a:b", [2]string{"1", "2"} }},
		"the value of X has a line": {change: func(t *Target) { t.Header = http.Header{"X": {"secret\nY: 2"}} }},
		"Config.RequestsPerSecond":  {cfg: Config{RequestsPerSecond: -1}},
		"Config.Timeout":            {cfg: Config{Timeout: -1}},
		"Config.RequestTimeout":     {cfg: Config{RequestTimeout: -1}},
	} {
		target := good
		if c.change != nil {
			c.change(&target)
		}
		report, err := Run(t.Context(), target, c.cfg)
		assert.True(t, report == nil && err != nil, "%s", says)
		assert.Contains(t, err.Error(), says)
		assert.True(t, !strings.Contains(err.Error(), "secret"), "a secret is shown: %v", err)
	}
}
