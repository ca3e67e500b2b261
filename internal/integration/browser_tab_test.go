package integration

import (
	"context"
	"fmt"
	"html"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/semel-dev/semel/internal/assert"
)

// patience is how long a step in the browser may take. The longest is a till
// that sends again until the killed service is back.
const patience = time.Minute

// betweenPresses is how long a person waits before pressing "send again". The
// demo's log, of which the page is made, is not long.
const betweenPresses = 50 * time.Millisecond

// startChromium starts the browser and returns a context for its tabs.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	options := append(
		chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(findChromium(t)),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
	)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, closeBrowser := chromedp.NewContext(ctx)
	t.Cleanup(closeBrowser)
	assert.NoError(t, chromedp.Do(ctx), "start Chromium")
	return ctx
}

// stage has what every test of the page needs: a browser, and the demo to start.
type stage struct {
	browser context.Context
	program string
}

func newStage(t *testing.T) stage {
	t.Helper()
	return stage{program: buildDemo(t), browser: startChromium(t)}
}

// open opens a page of a new demo, with more in its environment.
func (s stage) open(t *testing.T, scripts bool, query string, env ...string) (tab, demo) {
	t.Helper()
	d := startDemo(t, s.program, env...)
	b := openTab(t, s.browser, scripts)
	b.open(d.base + "/" + query)
	b.ready()
	return b, d
}

// opener opens a page of a new demo, beside all the others.
type opener func(t *testing.T, query string) (tab, demo)

// bothWays plays with JavaScript and without.
func (s stage) bothWays(t *testing.T, play func(t *testing.T, scripts bool, start opener)) {
	t.Helper()
	for name, scripts := range map[string]bool{"with JavaScript": true, "without JavaScript": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, scripts, func(t *testing.T, query string) (tab, demo) {
				t.Helper()
				t.Parallel()
				return s.open(t, scripts, query)
			})
		})
	}
}

// tab is one tab, with cookies and storage of its own.
type tab struct {
	t       *testing.T
	ctx     context.Context
	scripts bool
	console *transcript
}

// openTab opens a tab in which scripts run or do not. The test fails when the
// page breaks its own content security policy or throws an exception.
func openTab(t *testing.T, browser context.Context, scripts bool) tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	var mu sync.Mutex
	var faults []string
	console := &transcript{}
	t.Cleanup(func() {
		closeTab()
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, faults, nil, "what the browser objects to")
	})
	assert.NoError(t, chromedp.Listen(ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch ev := ev.(type) {
		case *audits.EventIssueAdded:
			if d := ev.Issue.Details.ContentSecurityPolicyIssueDetails; d != nil {
				faults = append(faults, "content security policy: "+d.ViolatedDirective+" "+d.BlockedURL)
			}
		case *runtime.EventExceptionThrown:
			fault := "exception: " + ev.ExceptionDetails.Text
			if thrown := ev.ExceptionDetails.Exception; thrown != nil {
				fault += " " + thrown.Description
			}
			faults = append(faults, fault)
		case *runtime.EventConsoleAPICalled:
			for _, said := range ev.Args {
				fmt.Fprintf(console, "console.%s: %s %s\n", ev.Type, said.Value, said.Description)
			}
		case *log.EventEntryAdded:
			fmt.Fprintf(console, "%s: %s %s\n", ev.Entry.Level, ev.Entry.Text, ev.Entry.URL)
		}
	}))
	_, err := chromedp.Call(ctx, audits.Enable, cdp.Empty{})
	assert.NoError(t, err)
	b := tab{t: t, ctx: ctx, scripts: scripts, console: console}
	b.run(scripts)
	return b
}

// run lets scripts run from now on, or not.
func (b tab) run(scripts bool) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !scripts})
	b.must(err, "let scripts run, or not")
}

// block keeps what matches the pattern from loading.
func (b tab) block(pattern string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, network.SetBlockedURLs, network.SetBlockedURLsParams{
		URLPatterns: []*network.BlockPattern{{URLPattern: pattern, Block: true}},
	})
	b.must(err, "block "+pattern)
}

// do runs steps, each within patience.
func (b tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	b.must(chromedp.Do(ctx, steps...), what)
}

// open goes to a page and waits until it has loaded.
func (b tab) open(url string) {
	b.t.Helper()
	b.do("open "+url, chromedp.Navigate(url))
}

// settle sends a till's order until there is a result. With scripts the till
// does so by itself.
func (b tab) settle(till string) {
	b.t.Helper()
	if b.scripts {
		b.waitForState(till, "paid", "paid-again")
		return
	}
	for began := time.Now(); time.Since(began) < patience; time.Sleep(betweenPresses) {
		if state := b.state(till); state == "paid" || state == "paid-again" {
			return
		}
		b.press("pay " + till)
	}
	b.must(fmt.Errorf("pressed for %v in vain", patience), "settle the order at "+till)
}

// state is the state that a till is in.
func (b tab) state(till string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.AttributeValue(chromedp.CSS("#"+till), "data-state"))
	b.must(err, "read the state of "+till)
	return got.Value
}

// reload loads the page again, posting again what was posted.
func (b tab) reload() {
	b.t.Helper()
	b.do("reload", chromedp.Reload())
	b.ready()
}

// reloadHalfWay loads the page of base again while a payment is on its way.
// Without scripts that payment is a navigation; DevTools cannot reload during
// one, but opening the same address does what a reload would.
func (b tab) reloadHalfWay(base string) {
	b.t.Helper()
	if b.scripts {
		b.reload()
		return
	}
	// The browser may drop the new navigation for the form's, where both are
	// under way at once; whoever reloads then does it again.
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(base)); err != nil {
		b.open(base)
	}
}

// ready waits until the page's script has begun all that it does, which without
// scripts is nothing.
func (b tab) ready() {
	b.t.Helper()
	if b.scripts {
		b.waitFor("#tills p.scripted:not([hidden])")
	}
}

// waitFor waits until something on the page matches the selector.
func (b tab) waitFor(selector string) {
	b.t.Helper()
	b.do("wait for "+selector, chromedp.WaitReady(chromedp.CSS(selector)))
}

// waitForState waits until a till is in one of the states.
func (b tab) waitForState(till string, states ...string) {
	b.t.Helper()
	selectors := make([]string, len(states))
	for i, state := range states {
		selectors[i] = "#" + till + `[data-state="` + state + `"]`
	}
	b.waitFor(strings.Join(selectors, ","))
}

// text returns what an element says.
func (b tab) text(selector string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	markup, err := chromedp.Run(ctx, chromedp.OuterHTML(chromedp.CSS(selector)))
	b.must(err, "read "+selector)
	return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(markup, ""))
}
