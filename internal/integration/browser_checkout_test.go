package integration

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/semel-dev/semel/internal/assert"
)

// chargedOnce holds that the bank has taken the money for the order of each tab
// once.
func (d demo) chargedOnce(tabs ...tab) {
	d.t.Helper()
	for _, b := range tabs {
		var got struct{ Charges, Taken int64 }
		d.read("/demo/orders/"+b.order(), &got)
		assert.Equal(b.t, got, struct{ Charges, Taken int64 }{1, 2500}, "what the bank has taken for the order")
	}
}

// logged are the requests for an order that have arrived, each with all that was
// logged of it.
func (d demo) logged(order string) []string {
	d.t.Helper()
	var log []struct {
		Order string   `json:"order"`
		Lines []string `json:"lines"`
	}
	d.read("/demo/log", &log)
	var requests []string
	for _, entry := range log {
		if entry.Order == order {
			requests = append(requests, strings.Join(entry.Lines, "\n"))
		}
	}
	return requests
}

// sent is how many requests for an order have arrived.
func (d demo) sent(order string) int { return len(d.logged(order)) }

// visit opens the checkout for a new order, which meets a fault. Until it is loaded
// again it waits for an answer however slow the machine is.
func (s stage) visit(t *testing.T, d demo, fault string) tab {
	t.Helper()
	b := openTab(t, s.browser, true)
	b.open(d.base + "/checkout")
	b.waitFor("#buy:not([hidden])")
	evaluate[string](b, `document.querySelector("#buy").dataset.patience = "60000"`)
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

// leaves presses the button, and waits until the work is under way.
func (b tab) leaves(d demo) {
	b.t.Helper()
	b.press("pay")
	order := b.order()
	assert.Eventually(b.t, "the bank is asked", func() bool {
		return slices.ContainsFunc(d.logged(order), func(lines string) bool { return strings.Contains(lines, "asks the bank") })
	})
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

// before lets a script run in each page from now on before the page's own.
func (b tab) before(script string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
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
	return tab{t: b.t, ctx: ctx, scripts: true, console: b.console}
}

// TestCheckout does with the page that pays through the module of package js what
// people do with a page. What the bank took is counted.
func TestCheckout(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d := startDemo(t, s.program)

	paid := []string{"paid", "replayed"}

	play := func(name string, play func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t)
		})
	}

	play("a service killed after the charge is asked again, and each try is shown", func(t *testing.T) {
		d := startDemo(t, s.program) // it takes the requests of others with it
		b := s.visit(t, d, "killed-after-charge")
		assert.Equal(t, b.key(), "not drawn yet")
		b.waitFor(`#money .verdict[data-verdict=""]`)
		b.press("pay")
		b.waitForState("checkout", paid...)
		assert.Contains(t, b.text("#tries li:first-child"), "no answer")
		assert.Contains(t, b.text("#tries li:last-child"), "201 Created")
		b.waitFor(`#money .verdict[data-verdict="right"]`)
		assert.Contains(t, b.text("#money .account"), "$25.00")
		d.chargedOnce(b)
	})

	play("a double click is one request", func(t *testing.T) {
		b := s.visit(t, d, "none")
		b.pressTwice("pay")
		b.waitForState("checkout", "paid")
		assert.Equal(t, d.sent(b.order()), 1)
		b.press("pay")
		b.waitForState("checkout", "told")
		assert.Equal(t, d.sent(b.order()), 1, "what is paid is told again, and not sent")
		d.chargedOnce(b)
	})

	play("a page reloaded half-way goes on with its key", func(t *testing.T) {
		b := s.visit(t, d, "slow")
		b.leaves(d)
		key := b.key()
		b.do("reload", chromedp.Reload())
		b.waitForState("checkout", paid...)
		assert.Equal(t, b.key(), key)
		assert.True(t, d.sent(b.order()) > 1, "the order was not sent again")
		d.chargedOnce(b)
	})

	play("a duplicated tab sends the same key", func(t *testing.T) {
		b := s.visit(t, d, "slow")
		b.leaves(d)
		other := b.duplicate()
		for _, each := range []tab{b, other} {
			each.waitForState("checkout", paid...)
		}
		assert.Equal(t, other.order(), b.order())
		assert.Equal(t, other.key(), b.key())
		assert.True(t, d.sent(b.order()) > 1, "the other tab sent nothing")
		d.chargedOnce(b)
	})

	play("who stops waiting, and presses again, asks with the same key", func(t *testing.T) {
		b := s.visit(t, d, "slow")
		b.leaves(d)
		key := b.key()
		b.press("stop")
		b.waitForState("checkout", "unknown")
		b.press("pay")
		b.waitForState("checkout", paid...)
		assert.Equal(t, b.key(), key)
		d.chargedOnce(b)
	})

	play("a network that was gone brings the payment when it is back", func(t *testing.T) {
		b := s.visit(t, d, "none")
		b.offline(true)
		b.press("pay")
		b.waitForState("checkout", "offline-here")
		b.becomes(`document.querySelector("#tries").innerText.includes(" times")`) // this machine is tried all the same
		assert.Equal(t, evaluate[int](b, `document.querySelectorAll("#tries li").length`), 1, "lines that say the same")
		key := b.key()
		assert.Equal(t, d.sent(b.order()), 0)
		b.offline(false)
		b.waitForState("checkout", paid...)
		assert.Equal(t, b.key(), key)
		d.chargedOnce(b)
	})

	for name, prepare := range map[string]string{
		"kept alive": `window.same = true`,
		// Who wants to be told of the end is not kept alive.
		"loaded anew": `addEventListener("unload", () => {}); window.same = true`,
	} {
		play("after the back button the page, "+name+", is told again and sends nothing", func(t *testing.T) {
			b := s.visit(t, d, "none")
			b.press("pay")
			b.waitForState("checkout", "paid")
			order, key := b.order(), b.key()
			evaluate[bool](b, prepare+` || true`)
			b.do("go on", chromedp.Click(chromedp.CSS(`a[href="/checkout/receipt"]`)), chromedp.WaitReady(chromedp.CSS("main.refused")))
			b.do("go back", chromedp.Evaluate[chromedp.Void](`setTimeout(() => history.back())`))
			b.becomes(`document.querySelector("#buy:not([hidden])") !== null`)
			same := evaluate[bool](b, `window.same === true`)
			assert.True(t, !same || name == "kept alive", "the page was to be loaded anew")
			t.Logf("kept alive: %v", same) // a browser short of memory keeps none
			evaluate[bool](b, `document.querySelector("button[value=pay]").click() ?? true`)
			b.becomes(`document.querySelector("#checkout").dataset.state === "told"`)
			assert.Equal(t, b.order(), order)
			assert.Equal(t, b.key(), key)
			assert.Equal(t, d.sent(order), 1)
			d.chargedOnce(b)
		})
	}

	play("a tab opened anew, and another order in the same tab, are other intents", func(t *testing.T) {
		b := s.visit(t, d, "none")
		b.press("pay")
		b.waitForState("checkout", "paid")
		first := b.key()
		d.chargedOnce(b)
		b.press("new")
		b.waitForState("checkout", "open")
		other := s.visit(t, d, "none")
		other.press("pay")
		other.waitForState("checkout", "paid")
		assert.True(t, other.key() != first, "a tab opened anew has the key of another")
		d.chargedOnce(other)
	})

	play("an order that was paid as the page was left is told so when it is back", func(t *testing.T) {
		b := s.visit(t, d, "none")
		b.press("pay")
		b.waitForState("checkout", "paid")
		key := b.key()
		evaluate[bool](b, `sessionStorage.setItem("semel-demo-checkout",
			JSON.stringify({ ...JSON.parse(sessionStorage.getItem("semel-demo-checkout")), state: "sending" })) ?? true`)
		b.do("reload", chromedp.Reload())
		b.waitForState("checkout", "told")
		assert.Equal(t, b.key(), key)
		assert.Equal(t, d.sent(b.order()), 1)
	})

	play("what others keep in the tab, and what cannot be read, keeps nobody from paying", func(t *testing.T) {
		b := s.visit(t, d, "none")
		for _, kept := range []string{"17", "not JSON", `{"id":"o_b","tries":1,"state":"sending"}`} {
			evaluate[bool](b, fmt.Sprintf(`["order", "semel-demo-checkout"].forEach((name) => sessionStorage.setItem(name, %q)) ?? true`, kept))
			b.do("reload", chromedp.Reload())
			b.waitFor("#buy:not([hidden])")
			b.waitForState("checkout", "open")
		}
		b.press("pay")
		b.waitForState("checkout", "paid", "replayed")
		d.chargedOnce(b)
	})

	play("a tab whose storage is full sends nothing, and says so", func(t *testing.T) {
		b := s.visit(t, d, "none")
		evaluate[bool](b, `(Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError") }) && true`)
		b.press("pay")
		b.waitForState("checkout", "unsent")
		assert.Contains(t, b.text("#why"), "storage is blocked or full")
		assert.Equal(t, d.sent(b.order()), 0)
	})

	play("a tab whose storage is blocked shows the page, sends nothing, and says so", func(t *testing.T) {
		b := s.visit(t, d, "none")
		b.before(`Object.defineProperty(window, "sessionStorage", { get() { throw new DOMException("blocked", "SecurityError") } })`)
		b.do("reload", chromedp.Reload())
		b.waitFor("#buy:not([hidden])")
		b.press("pay")
		b.waitForState("checkout", "unsent")
		assert.Contains(t, b.text("#why"), "storage is blocked or full")
		assert.Equal(t, d.sent(b.order()), 0)
	})

	play("a try shows the word for its key, and a redirect, of which a browser shows nothing, is one", func(t *testing.T) {
		b := s.visit(t, d, "none")
		evaluate[bool](b, `(window.fetch = new Proxy(fetch, { apply(real, it, [url, ...more]) {
			if (!String(url).endsWith("/payments")) return Reflect.apply(real, it, [url, ...more]);
			window.asked = (window.asked ?? 0) + 1;
			return asked === 1 ? new Response("", { status: 409, headers: { "Semel-Outcome": "in-progress" } })
				: { status: 0, type: "opaqueredirect", headers: new Headers(), text: async () => "" };
		} })) && true`)
		b.press("pay")
		b.waitForState("checkout", "unknown")
		assert.Contains(t, b.text("#tries li:first-child"), "409 Conflict · in-progress")
		assert.Contains(t, b.text("#tries li:last-child"), "a redirect")
		assert.Contains(t, b.text("#why"), "a redirect")
	})
}

// TestCheckoutLooks sees the page in every look, as TestShopPageLooks does the
// tills.
func TestCheckoutLooks(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d := startDemo(t, s.program)
	b := s.visit(t, d, "slow")
	b.shoot("c0-open")
	b.leaves(d)
	b.press("stop")
	b.waitForState("checkout", "unknown")
	b.see("c1-unknown")
	b.press("pay")
	b.waitForState("checkout", "paid", "replayed") // who leaves may take the first request along
	b.waitFor(`#money .verdict[data-verdict="right"]`)
	b.see("c2-paid")
	b.open(d.base + "/checkout/receipt")
	b.see("c3-receipt")

	b = openTab(t, s.browser, false)
	b.open(d.base + "/checkout")
	assert.Contains(t, b.text("noscript"), "JavaScript is off")
	b.see("c4-without-JavaScript")
}

// The service and the page of docs/browser.md, as they are printed there, but on
// a port of their own.
func TestTheShopOfTheBrowserDocument(t *testing.T) {
	t.Parallel()
	assert.LeaveToPlainRun(t, "what it drives is built without the race detector")
	base := serveBrowserDocument(t)
	b := openTab(t, startChromium(t), true)
	said := func(text string) {
		t.Helper()
		b.becomes(`document.querySelector("[role=status]").textContent === "` + text + `"`)
	}
	payments := func(key string) string {
		t.Helper()
		return demo{t: t, base: base}.pay("/payments", key).Body
	}

	b.open(base)
	said("Nothing was sent from this tab.")
	evaluate[bool](b, `document.querySelector("button").click() ?? document.querySelector("button").click() ?? true`)
	said("Paid. Thank you.")
	b.do("reload", chromedp.Reload())
	said("Paid. Thank you.")
	evaluate[bool](b, `document.querySelector("button").click() ?? true`)
	said("Paid. Thank you.")
	assert.Equal(t, payments("another"), "payment 2\n", "the page made one")

	// As if the reload had come before the answer. What is asked is shown for as
	// long as nothing has come back.
	evaluate[bool](b, `sessionStorage.setItem("semel:order 17",
		JSON.stringify({ ...JSON.parse(sessionStorage.getItem("semel:order 17")), settled: null })) ?? true`)
	b.before(`window.told = []; const send = fetch;
		window.fetch = (...request) => { told.push(document.querySelector("[role=status]").textContent); return send(...request); }`)
	b.do("reload", chromedp.Reload())
	said("Paid. Thank you.")
	assert.Equal(t, evaluate[string](b, `told.join()`), "Checking …", "while it asks")
	assert.Equal(t, payments("a-third"), "payment 3\n", "the page made no second one")

	evaluate[bool](b, `sessionStorage.setItem("semel:order 17", "damaged") ?? document.querySelector("button").click() ?? true`)
	b.becomes(`document.querySelector("[role=status]").textContent.startsWith("Nothing was sent: semel: ")`)
}

// serveBrowserDocument builds and starts the program of docs/browser.md beside
// its page, until the test ends, and returns its address.
func serveBrowserDocument(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/browser.md")
	assert.NoError(t, err)
	block := func(language string) string {
		t.Helper()
		found := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```").FindSubmatch(text)
		assert.True(t, found != nil, "docs/browser.md has no block of %s", language)
		return string(found[1])
	}
	const printed = `return http.ListenAndServe("localhost:8090", nil)`
	program := block("go")
	assert.Contains(t, program, printed)
	program = strings.Replace(program, printed, `l, err := net.Listen("tcp", "localhost:0")
		if err != nil {
			return err
		}
		fmt.Println("http://" + l.Addr().String())
		return http.Serve(l, nil)`, 1)
	program = strings.Replace(program, `"net/http"`, `"net"; "net/http"`, 1)

	dir := t.TempDir()
	for name, content := range map[string]string{"page.html": block("html"), "main.go": program} {
		assert.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "shop"), filepath.Join(dir, "main.go")).CombinedOutput()
	assert.NoError(t, err, "%s", out)
	cmd := exec.Command(filepath.Join(dir, "shop"))
	cmd.Dir = dir
	stdout, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	base, err := bufio.NewReader(stdout).ReadString('\n')
	assert.NoError(t, err, "the address of the program")
	return strings.TrimSpace(base)
}
