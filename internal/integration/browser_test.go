package integration

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/semel-dev/semel/internal/assert"
)

// paidOnce and paidTwice are the account of one order of $25.00.
var (
	paidOnce  = account{Orders: 1, Payments: 1, Charges: 1, Charged: 1, Taken: 2500}
	paidTwice = account{Orders: 1, Payments: 2, Charges: 2, Charged: 1, Taken: 5000}
)

// TestShopPage drives the demo's page in Chromium, against the real processes.
func TestShopPage(t *testing.T) {
	t.Parallel()
	s := newStage(t)

	s.bothWays(t, func(t *testing.T, scripts bool, start opener) {
		t.Run("an order is paid and the page says so", func(t *testing.T) {
			b, d := start(t, "?fault=none")
			b.press("pay keyed")
			b.waitForState("keyed", "paid")
			assert.Contains(t, b.text("#keyed .tries"), "201 Created · executed · payment ")
			b.waitFor(`#account-keyed [data-verdict="right"]`)
			assert.Contains(t, b.text("#account-keyed"), "$25.00 taken for 1 order of $25.00")
			assert.Equal(t, d.ledger("keyed"), paidOnce)
			assert.Equal(t, d.ledger("keyless"), account{})
		})

		t.Run("a double click with a key is paid once", func(t *testing.T) {
			b, d := start(t, "?fault=none")
			b.pressTwice("pay keyed")
			if scripts {
				b.waitFor("#keyed .tries li:nth-child(2)")
			} else {
				// The browser drops the first answer, and the second may be
				// that the first is still running.
				b.waitForState("keyed", "paid", "again")
			}
			b.settle("keyed")
			assert.Equal(t, d.ledger("keyed"), paidOnce)
		})

		t.Run("the button that clicks twice is paid once with a key and twice without", func(t *testing.T) {
			b, d := start(t, "?fault=none")
			b.press("twice all")
			b.waitFor("#keyed .tries li:nth-child(2)")
			b.waitFor("#keyless .tries li:nth-child(2)")
			b.waitForState("keyed", "paid")
			b.waitForState("keyless", "paid-again")
			b.waitFor(`#account-keyless [data-verdict="over"]`)
			assert.Contains(t, b.text("#account-keyless"), "$50.00 taken for 1 order of $25.00")
			assert.Equal(t, d.ledger("keyed"), paidOnce)
			assert.Equal(t, d.ledger("keyless"), paidTwice)
		})

		t.Run("a page reloaded half-way has the same key, and the order is paid once", func(t *testing.T) {
			b, d := start(t, "?fault=none")
			key := b.text("#keyed [data-show=key]")
			b.choose("slow")
			b.pressOnly("pay keyed")
			assert.Eventually(t, "the payment has arrived", func() bool { return d.arrived("keyed") == 1 })
			b.reloadHalfWay(d.base)
			assert.Equal(t, b.text("#keyed [data-show=key]"), key)
			b.settle("keyed")
			assert.True(t, d.arrived("keyed") > 1, "the order was not sent again")
			assert.Equal(t, d.ledger("keyed"), paidOnce)
		})

		t.Run("a page reloaded half-way has no key at the other till, and the order is paid twice", func(t *testing.T) {
			b, d := start(t, "?fault=none")
			order := b.text("#keyless [data-show=order]")
			b.choose("slow")
			b.pressOnly("pay keyless")
			assert.Eventually(t, "the payment has arrived", func() bool { return d.arrived("keyless") == 1 })
			b.reloadHalfWay(d.base)
			assert.Equal(t, b.text("#keyless [data-show=order]"), order)
			b.press("pay keyless")
			b.waitForState("keyless", "paid", "paid-again")
			assert.Eventually(t, "the bank has taken the money twice", func() bool {
				got := d.ledger("keyless")
				return got.Orders == 1 && got.Charges == 2 && got.Charged == 1 && got.Taken == 5000
			})
		})

		t.Run("a service killed after the charge is asked again: one charge with a key, two without", func(t *testing.T) {
			b, d := start(t, "?fault=none")
			b.choose("killed-after-charge")
			b.press("pay all")
			if !scripts {
				for _, till := range []string{"keyless", "naive", "keyed"} {
					b.waitForState(till, "unknown")
					assert.Contains(t, b.text("#"+till+" .said p:not([hidden])"), "No answer. Was it charged? You cannot know.")
				}
			}
			b.settle("keyed")
			b.settle("naive")
			b.settle("keyless")
			if scripts {
				assert.Equal(t, b.text("#keyed .tries li:first-child"), "no answer")
				assert.Equal(t, b.text("#keyless .tries li:first-child"), "no answer")
			}
			b.waitFor(`#account-keyed [data-verdict="right"]`)
			b.waitFor(`#account-keyless [data-verdict="over"]`)
			assert.Equal(t, d.ledger("keyed"), paidOnce)
			for _, door := range []string{"keyless", "naive"} {
				got := d.ledger(door)
				assert.True(t, got.Orders == 1 && got.Charges >= 2, "charges at %s, more on a slow machine: %+v", door, got)
			}
		})
	})

	t.Run("with JavaScript a page reloaded after the answer has another order", func(t *testing.T) {
		t.Parallel()
		b, d := s.open(t, true, "?fault=none")
		key := b.text("#keyed [data-show=key]")
		b.press("pay keyed")
		b.waitForState("keyed", "paid")
		b.reload()
		b.waitForState("keyed", "open")
		assert.True(t, b.text("#keyed [data-show=key]") != key, "the key of a settled order is still there")
		assert.Equal(t, d.ledger("keyed"), paidOnce)
	})

	t.Run("with JavaScript a page whose demo is gone says that its figures are old", func(t *testing.T) {
		t.Parallel()
		b, d := s.open(t, true, "?fault=none")
		b.waitFor("#stale[hidden]")
		d.stop()
		b.waitFor("#stale:not([hidden])")
	})

	for part, pattern := range map[string]string{
		"htmx":                               "*://*:*/shop/vendor/*",
		"the extension that brings its news": "*://*:*/shop/vendor/hx-sse*",
	} {
		t.Run("with JavaScript a page that lacks "+part+" says so and works as without, and its money is true", func(t *testing.T) {
			t.Parallel()
			d := startDemo(t, s.program)
			b := openTab(t, s.browser, true)
			b.block(pattern)
			b.scripts = false // each press brings a page
			b.open(d.base + "/?fault=none")
			b.press("twice all")
			b.waitForState("keyed", "paid")
			assert.Contains(t, b.text("#account-keyed"), "$25.00 taken for 1 order of $25.00")
			assert.Contains(t, b.text("#account-keyless"), "$50.00 taken for 1 order of $25.00")
			assert.Equal(t, d.ledger("keyless"), paidTwice)
			b.do("find that it says so", chromedp.WaitVisible(chromedp.CSS("#plain")))
		})
	}

	t.Run("without JavaScript an answer reloaded is the same order sent again", func(t *testing.T) {
		t.Parallel()
		b, d := s.open(t, false, "?fault=none")
		b.press("pay all")
		b.reload()
		assert.Contains(t, b.text("#keyed .tries"), "201 Created · replayed · payment ")
		assert.Equal(t, d.ledger("keyed"), paidOnce)
		assert.Equal(t, d.ledger("keyless"), paidTwice)
	})
}
