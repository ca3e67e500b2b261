package integration

import (
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// TestTheShopPageIsTheSameOnEveryServer drives the page of demos that keep
// their keys, and what they sell, on a server.
func TestTheShopPageIsTheSameOnEveryServer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for name, server := range held(demoServers, "PostgreSQL") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, d := s.open(t, true, "?fault=none", storeVariable+"="+server.url(t))
			b.choose("killed-after-charge")
			b.patient()
			b.press("pay all")
			for _, till := range []string{"keyed", "naive", "keyless"} {
				b.settle(till)
			}
			b.waitFor(`#account-keyed [data-verdict="right"]`)
			b.waitFor(`#account-keyless [data-verdict="over"]`)
			assert.Contains(t, b.text("#account-keyed"), "$25.00 taken for 1 order of $25.00")
			assert.Contains(t, b.text("#keyed .tries li:last-child"), "201 Created · ")
			assert.Equal(t, d.ledger("keyed"), paidOnce)
			got := d.ledger("keyless")
			assert.True(t, got.Orders == 1 && got.Charges >= 2, "charges without a key, more on a slow machine: %+v", got)
		})
	}
}
