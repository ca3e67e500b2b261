package integration

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/semel-dev/semel/internal/assert"
)

// minus is what has come to an account since it was before.
func (a account) minus(before account) account {
	return account{
		a.Orders - before.Orders, a.Payments - before.Payments, a.Charges - before.Charges,
		a.Charged - before.Charged, a.Taken - before.Taken,
	}
}

// sent is how many requests for an order have arrived.
func (d demo) sent(order string) int {
	d.t.Helper()
	var log []struct {
		Order string `json:"order"`
	}
	d.read("/demo/log", &log)
	n := 0
	for _, entry := range log {
		if entry.Order == order {
			n++
		}
	}
	return n
}

// visit opens the checkout for a new order, which meets a fault.
func (s stage) visit(t *testing.T, d demo, fault string) tab {
	t.Helper()
	b := openTab(t, s.browser, true)
	b.open(d.base + "/checkout")
	b.waitFor("#buy:not([hidden])")
	b.choose(fault)
	return b
}

// order and key are those of the checkout.
func (b tab) order() string {
	return evaluate[string](b, `document.querySelector("[data-show=order]").textContent`)
}

func (b tab) key() string {
	return evaluate[string](b, `document.querySelector("[data-show=key]").textContent`)
}

// becomes waits until an expression is true in the page, whichever that is by
// then: a page kept alive for the back button comes without being loaded.
func (b tab) becomes(expression string) {
	b.t.Helper()
	assert.Eventually(b.t, expression, func() bool {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		defer cancel()
		got, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		return err == nil && got
	})
}

// leaves presses the button, and waits until the request has arrived.
func (b tab) leaves(d demo) {
	b.t.Helper()
	b.press("pay")
	assert.Eventually(b.t, "the payment has arrived", func() bool { return d.sent(b.order()) == 1 })
}

// offline takes the network from the tab, or gives it back.
func (b tab) offline(is bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	conditions := network.Conditions{Offline: is, DownloadThroughput: -1, UploadThroughput: -1}
	_, err := chromedp.Call(ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{&conditions},
	})
	assert.NoError(b.t, err)
	_, err = chromedp.Call(ctx, network.OverrideNetworkState, network.OverrideNetworkStateParams{
		Offline: is, DownloadThroughput: -1, UploadThroughput: -1,
	})
	assert.NoError(b.t, err)
}

// duplicate opens the page once more in a tab whose storage is a copy of this
// one's, as the browser makes it for a duplicated tab.
func (b tab) duplicate() tab {
	b.t.Helper()
	opened := chromedp.WaitNewTarget(b.ctx, func(info *target.Info) bool { return strings.HasSuffix(info.URL, "/checkout") })
	b.press("copy")
	ctx, closeTab := chromedp.NewContext(b.ctx, chromedp.WithTargetID(<-opened))
	b.t.Cleanup(closeTab)
	assert.NoError(b.t, chromedp.Do(ctx), "attach to the other tab") // which ends with the context of its first step
	return tab{t: b.t, ctx: ctx, scripts: true}
}

// TestCheckout does with the page that pays through the module of package js what
// people do with a page. What the bank took is counted.
func TestCheckout(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d := startDemo(t, s.program)

	// One after the other, so that what comes to the account is theirs.
	play := func(name string, want account, play func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			before := d.ledger("keyed")
			play(t)
			assert.Equal(t, d.ledger("keyed").minus(before), want)
		})
	}
	paid := []string{"paid", "replayed"}

	play("a service killed after the charge is asked again, and each try is shown", paidOnce, func(t *testing.T) {
		b := s.visit(t, d, "killed-after-charge")
		assert.Equal(t, b.key(), "not drawn yet")
		b.press("pay")
		b.waitForState("checkout", paid...)
		assert.Contains(t, b.text("#tries li:first-child"), "no answer")
		assert.Contains(t, b.text("#tries li:last-child"), "201")
		b.waitFor(`#money [data-verdict="right"]`)
	})

	play("a double click is one request", paidOnce, func(t *testing.T) {
		b := s.visit(t, d, "none")
		b.pressTwice("pay")
		b.waitForState("checkout", "paid")
		assert.Equal(t, d.sent(b.order()), 1)
		b.press("pay")
		b.waitForState("checkout", "told")
		assert.Equal(t, d.sent(b.order()), 1, "what is paid is told again, and not sent")
	})

	play("a page reloaded half-way goes on with its key", paidOnce, func(t *testing.T) {
		b := s.visit(t, d, "slow")
		b.leaves(d)
		key := b.key()
		b.reload()
		b.waitForState("checkout", paid...)
		assert.Equal(t, b.key(), key)
		assert.True(t, d.sent(b.order()) > 1, "the order was not sent again")
	})

	play("a duplicated tab sends the same key", paidOnce, func(t *testing.T) {
		b := s.visit(t, d, "slow")
		b.leaves(d)
		other := b.duplicate()
		for _, each := range []tab{b, other} {
			each.waitForState("checkout", paid...)
		}
		assert.Equal(t, other.order(), b.order())
		assert.Equal(t, other.key(), b.key())
		assert.True(t, d.sent(b.order()) > 1, "the other tab sent nothing")
	})

	play("a network that was gone brings the payment when it is back", paidOnce, func(t *testing.T) {
		b := s.visit(t, d, "none")
		b.offline(true)
		b.press("pay")
		b.waitForState("checkout", "offline")
		key := b.key()
		assert.Equal(t, d.sent(b.order()), 0)
		b.offline(false)
		b.waitForState("checkout", paid...)
		assert.Equal(t, b.key(), key)
	})

	for name, prepare := range map[string]string{
		"kept alive": `window.same = true`,
		// Who wants to be told of the end is not kept alive.
		"loaded anew": `addEventListener("unload", () => {}); window.same = true`,
	} {
		play("after the back button the page, "+name+", is told again and sends nothing", paidOnce, func(t *testing.T) {
			b := s.visit(t, d, "none")
			b.press("pay")
			b.waitForState("checkout", "paid")
			order, key := b.order(), b.key()
			evaluate[bool](b, prepare+` || true`)
			b.do("go on", chromedp.Click(chromedp.CSS(`a[href="/checkout/receipt"]`)), chromedp.WaitReady(chromedp.CSS("main.refused")))
			b.do("go back", chromedp.Evaluate[chromedp.Void](`history.back()`))
			b.becomes(`document.querySelector("#buy:not([hidden])") !== null`)
			assert.Equal(t, evaluate[bool](b, `window.same === true`), name == "kept alive", "whether it is the same page")
			evaluate[bool](b, `document.querySelector("button[value=pay]").click() ?? true`)
			b.becomes(`document.querySelector("#checkout").dataset.state === "told"`)
			assert.Equal(t, b.order(), order)
			assert.Equal(t, b.key(), key)
			assert.Equal(t, d.sent(order), 1)
		})
	}

	twoOrders := account{Orders: 2, Payments: 2, Charges: 2, Charged: 2, Taken: 5000}
	play("a tab opened anew, and another order in the same tab, are other intents", twoOrders, func(t *testing.T) {
		b := s.visit(t, d, "none")
		b.press("pay")
		b.waitForState("checkout", "paid")
		first := b.key()
		b.press("new")
		b.waitForState("checkout", "open")
		other := s.visit(t, d, "none")
		other.press("pay")
		other.waitForState("checkout", "paid")
		assert.True(t, other.key() != first, "a tab opened anew has the key of another")
	})
}

// TestCheckoutLooks sees the page in every look, as TestShopPageLooks does the
// tills.
func TestCheckoutLooks(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d := startDemo(t, s.program)
	b := s.visit(t, d, "reply-lost")
	b.see("c1-open")
	b.press("pay")
	b.waitForState("checkout", "replayed")
	b.waitFor(`#money [data-verdict="right"]`)
	b.see("c2-replayed")
	b.open(d.base + "/checkout/receipt")
	b.see("c3-receipt")

	b = openTab(t, s.browser, false)
	b.open(d.base + "/checkout")
	assert.Contains(t, b.text("noscript"), "JavaScript is off")
	b.see("c4-without-JavaScript")
}
