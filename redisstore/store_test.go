package redisstore

import (
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

func TestSettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  Config
		says string
	}{
		"a brace in the prefix":   {Config{Prefix: "a{b"}, "braces"},
		"a prefix that is long":   {Config{Prefix: strings.Repeat("x", MaxPrefixLength+1)}, "64"},
		"a prefix that closes it": {Config{Prefix: "a}"}, "braces"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(t.Context(), "redis://localhost", c.cfg)
			assert.ErrorIs(t, err, semel.ErrConfig)
			assert.True(t, strings.Contains(err.Error(), c.says), "%v says %q", err, c.says)
		})
	}
	_, err := New(t.Context(), nil, Config{})
	assert.ErrorIs(t, err, semel.ErrConfig)
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]struct{ single, tls bool }{
		"redis://h":      {true, false},
		"rediss://h:1/2": {true, true},
		"redis-cluster://h:1?addr=h2:1&addr=h3:1": {false, false},
		"rediss-cluster://u:p@h:1":                {false, true},
	} {
		opts, err := clientOptions(url)
		assert.NoError(t, err, url)
		assert.Equal(t, opts.ForceSingleClient, want.single, "%s: one server", url)
		assert.Equal(t, opts.TLSConfig != nil, want.tls, "%s: TLS", url)
		assert.True(t, opts.DisableRetry, "%s: the client does not send again by itself", url)
	}
	opts, err := clientOptions("redis-cluster://h:1?addr=h2:1&addr=h3:1")
	assert.NoError(t, err)
	assert.Equal(t, opts.InitAddress, []string{"h:1", "h2:1", "h3:1"})

	for _, url := range []string{"", "h:6379", "postgres://h", "-cluster://h", "sqlite-cluster://h", "redis://u:hush@h/x/y", "redis://u:hush@h:port"} {
		_, err := clientOptions(url)
		assert.ErrorIs(t, err, semel.ErrConfig, "%q", url)
		assert.True(t, !strings.Contains(err.Error(), "hush"), "no password is shown: %v", err)
	}
}

func TestAllOfARecordIsInOneSlot(t *testing.T) {
	t.Parallel()
	s := &Store{tags: tagsOf("p")}
	seen := map[string]bool{}
	for _, key := range []string{"{a}", "{b}", "}{", ""} {
		at := s.placeOf("{scope}", key)
		for _, name := range []string{at.record(), at.index(), at.audit()} {
			// The slot is that of what stands between the first brace and the
			// next closing one.
			assert.True(t, strings.HasPrefix(name, s.tags[at.bucket]), "%q begins with its tag", name)
			assert.Equal(t, strings.IndexByte(name, '}'), len(s.tags[at.bucket])-1, "where the tag of %q ends", name)
		}
		seen[at.record()] = true
	}
	assert.Equal(t, len(seen), 4, "records")
}
