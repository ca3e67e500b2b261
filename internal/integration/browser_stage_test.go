package integration

import (
	"bufio"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/semel-dev/semel/internal/assert"
)

// evaluate returns what an expression gives in the page, promises awaited.
func evaluate[T any](b tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	b.must(err, "evaluate "+expression)
	return got
}

// hops are the marks of a till's diagram, in their order.
func (b tab) hops(till string) []string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	markup, err := chromedp.Run(ctx, chromedp.OuterHTML(chromedp.CSS("#story-"+till)))
	b.must(err, "read the diagram of "+till)
	var marks []string
	for _, hop := range regexp.MustCompile(`<li [^>]*data-mark="([a-z]+)"`).FindAllStringSubmatch(markup, -1) {
		marks = append(marks, hop[1])
	}
	return marks
}

// TestStage drives what the page shows beside the money.
func TestStage(t *testing.T) {
	t.Parallel()
	s := newStage(t)

	s.bothWays(t, func(t *testing.T, scripts bool, start opener) {
		t.Run("a kill after the charge is drawn: money, the kill, and that the browser does not know", func(t *testing.T) {
			b, _ := start(t, "?fault=none")
			b.choose("killed-after-charge")
			b.press("pay keyed")
			b.settle("keyed")
			assert.Eventually(t, "the takeover is drawn", func() bool {
				return strings.Contains(b.text("#story-keyed ol"), "bank: knows it: no charge")
			})
			got := strings.Join(b.hops("keyed"), " ")
			for _, mark := range []string{"money", "killed", "unknown"} {
				assert.Equal(t, strings.Count(got, mark), 1, "%s in %s", mark, got)
			}
			assert.Contains(t, b.text("#story-keyed ol"), "service to store: takes the key over, attempt 2")
			assert.Contains(t, b.text("#story-keyed ol"), "supervisor: process ended which=service")
		})

		t.Run("a lost reply is cut, and the repeat is answered from the store", func(t *testing.T) {
			b, _ := start(t, "?fault=reply-lost")
			b.press("pay keyed")
			b.settle("keyed")
			b.waitFor("#story-keyed .hop:last-child.answer")
			b.waitFor(`#account-keyed [data-verdict="right"]`)
			assert.Equal(t, b.hops("keyed"), []string{
				"ask", "ask", "ask", "money", "answer", "ask", "ask", "lost", "unknown", // the order, and its lost reply
				"ask", "answer", "answer", // the repeat
			})
		})

		t.Run("who guesses first is asked before anything shows", func(t *testing.T) {
			b, d := start(t, "?fault=killed-after-charge&guess=on")
			b.press("pay keyed")
			b.waitFor(`#account-keyed button[value="no keyed"]`)
			assert.Equal(t, strings.Join(b.hops("keyed"), " "), "ask unknown")
			assert.Equal(t, d.arrived("keyed"), 1, "requests before the guess")
			b.press("no keyed")
			b.waitFor("#keyed .guessed")
			assert.Contains(t, b.text("#keyed .guessed"), "You said no. It was charged once.")
			b.settle("keyed")
			assert.Equal(t, d.ledger("keyed"), paidOnce)
		})

		if scripts {
			t.Run("a guess counts although news took its button away before it was answered", func(t *testing.T) {
				b, d := start(t, "?fault=request-lost&guess=on")
				b.press("pay keyed")
				b.waitFor(`#account-keyed button[value="no keyed"]`)
				b.do("have the button taken away first", chromedp.Evaluate[chromedp.Void](`{
					const send = fetch;
					window.fetch = async (...request) => {
						const answer = await send(...request);
						document.querySelector('button[value="no keyed"]')?.remove();
						return answer;
					};
				}`))
				b.press("no keyed")
				b.settle("keyed")
				assert.Equal(t, d.ledger("keyed"), paidOnce)
			})
		}

		t.Run("a right guess stays right when the order is charged later", func(t *testing.T) {
			b, d := start(t, "?fault=request-lost&guess=on")
			b.press("pay keyed")
			b.waitFor(`#account-keyed button[value="no keyed"]`)
			b.press("no keyed")
			b.settle("keyed")
			assert.Eventually(t, "the page says what came since", func() bool {
				return b.text("#keyed .guessed") ==
					"You said no, and you were right. It was not charged. The client could not know. It has been charged once since."
			})
			assert.Equal(t, d.ledger("keyed"), paidOnce)
		})

		t.Run("step by step shows one hop more with each press, and the money at the end", func(t *testing.T) {
			b, _ := start(t, "?step=on&fault=none")
			b.press("pay keyed")
			b.waitForState("keyed", "paid")
			for n := 1; n < 8; n++ {
				b.waitFor("#story-keyed .hop:nth-child(" + strconv.Itoa(n) + "):last-child")
				b.waitFor(`button[value="step keyed"]`)
				b.do("find what the client knows covered", chromedp.WaitNotVisible(chromedp.CSS("#keyed .said")))
				b.press("step keyed")
			}
			b.waitFor(`#account-keyed [data-verdict="right"]`)
			assert.Equal(t, len(b.hops("keyed")), 8)
			b.do("find what the client knows", chromedp.WaitVisible(chromedp.CSS("#keyed .said")))
			if scripts {
				b.waitFor("#account-keyed:focus")
			}
		})

		t.Run("a new key for each send is paid twice at the till with Semel too", func(t *testing.T) {
			b, d := start(t, "?fault=reply-lost&newkeys=on")
			b.press("pay keyed")
			b.settle("keyed")
			b.waitFor(`#account-keyed [data-verdict="over"]`)
			assert.Equal(t, d.ledger("keyed"), paidTwice)
		})

		t.Run("another amount under the same key is refused, and taken without a key", func(t *testing.T) {
			b, d := start(t, "?fault=reply-lost&otheramount=on")
			b.press("pay all")
			if !scripts {
				b.press("pay keyless")
				b.press("pay keyed")
			}
			b.waitForState("keyed", "doubt")
			b.waitForState("keyless", "paid-again")
			assert.Contains(t, b.text("#keyed .tries"), "422 Unprocessable Entity · key-reused")
			assert.Equal(t, d.ledger("keyed"), paidOnce)
			assert.Equal(t, d.ledger("keyless"), account{Orders: 1, Payments: 2, Charges: 2, Charged: 1, Taken: 5100})
		})

		t.Run("what a script has armed is not taken by a page, nor one page's fault by another's", func(t *testing.T) {
			b, d := start(t, "?fault=none")
			armed := func() (times int) {
				var faults struct {
					Armed struct{ Times int }
				}
				d.read("/demo/faults", &faults)
				return faults.Armed.Times
			}
			resp, err := http.Post(d.base+"/demo/faults", "application/json", strings.NewReader(`{"fault":"request-lost"}`))
			assert.NoError(t, err)
			assert.NoError(t, resp.Body.Close())
			other := openTab(t, s.browser, scripts)
			other.open(d.base + "/?fault=reply-lost")
			b.press("pay keyed")
			b.waitForState("keyed", "paid")
			assert.Contains(t, b.text("#keyed .tries li:only-child"), "201 Created · executed")
			other.press("pay keyed")
			other.settle("keyed")
			assert.Contains(t, other.text("#keyed .tries li:last-child"), "replayed")
			assert.Equal(t, armed(), 1, "payments that the script's fault waits for")
		})

		t.Run("a number of shoppers that cannot be meant holds up nothing, and Enter in it pays nothing", func(t *testing.T) {
			b, d := start(t, "?fault=none")
			b.do(
				"type a number", chromedp.Focus(chromedp.CSS(`input[name="shoppers"]`)),
				chromedp.KeyEvent("5000"), chromedp.KeyEvent("\r"),
			)
			b.press("pay keyed")
			b.waitForState("keyed", "paid")
			b.waitFor(`#account-keyed [data-verdict="right"]`)
			assert.Equal(t, d.ledger("keyed"), paidOnce)
			assert.Equal(t, d.ledger("keyless"), account{})
		})

		t.Run("a lease is set, and outlives a kill", func(t *testing.T) {
			b, d := start(t, "?lease=500ms&fault=killed-after-charge")
			assert.Contains(t, b.text("#now"), "Not set yet, but with your next payment or run: a lease of 500ms.")
			b.press("pay keyed")
			b.settle("keyed")
			var setting struct{ Lease string }
			d.read("/demo/service", &setting)
			assert.Equal(t, setting.Lease, "500ms")
			b.waitFor(`#set[data-lease="500ms"]`)
			assert.True(t, !strings.Contains(b.text("#now"), "Not set yet"), "the page still says: %s", b.text("#now"))
			assert.Equal(t, d.ledger("keyed"), paidOnce)
		})

		t.Run("a crowd shops, and its table holds each order charged once at the till with Semel", func(t *testing.T) {
			b, d := start(t, "?seed=7&shoppers=40&trouble=20")
			b.press("run")
			if scripts {
				b.waitFor("#run progress")
				b.press("run")
				b.waitFor("#crowd .refusal:not([hidden])")
				assert.Equal(t, b.text("#crowd .refusal"), "The run was not started: a run is under way: start another when it has ended.")
			}
			finished := func() bool {
				var report struct {
					Running bool `json:"running"`
					Holds   bool `json:"holds"`
					Done    int  `json:"done"`
				}
				d.read("/demo/crowd", &report)
				return report.Holds && !report.Running && report.Done == 120
			}
			assert.Eventually(t, "the run holds", finished)
			if !scripts {
				b.click("#run a")
			}
			b.waitFor(`#run [data-row="keyed"]:not(.over)`)
			assert.Contains(t, b.text("#run"), "At the till with Semel every order was answered, charged and stored once.")
			assert.Equal(t, d.ledger("keyed"), account{}, "money of the crowd in the till")
		})
	})

	t.Run("ten open pages ask for nothing while nothing changes, and see what does", func(t *testing.T) {
		t.Parallel()
		d := startDemo(t, s.program)
		pages := make([]tab, 10)
		for i := range pages {
			pages[i] = openTab(t, s.browser, true)
			pages[i].open(d.base + "/?fault=none")
			pages[i].waitFor(`#live:not(.htmx-request)`)
		}
		requests := func() []int {
			counts := make([]int, len(pages))
			for i, b := range pages {
				counts[i] = evaluate[int](b, `performance.getEntriesByType("resource").length`)
			}
			return counts
		}
		// Those of the pages' start come when they come.
		assert.Eventually(t, "no page has asked for anything in two seconds", func() bool {
			before := requests()
			evaluate[bool](pages[0], `new Promise((done) => setTimeout(() => done(true), 2000))`)
			return slices.Equal(requests(), before)
		})
		pages[0].press("pay keyed")
		for _, b := range pages {
			b.waitFor(`#account-keyed [data-verdict="right"]`)
			b.waitFor("#story-keyed .hop.money")
		}
	})

	t.Run("a stream is open until the demo ends, which ends it well and does not wait to cut it", func(t *testing.T) {
		t.Parallel()
		d := startDemo(t, s.program)
		resp, err := http.Get(d.base + "/demo/changes")
		assert.NoError(t, err)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		assert.True(t, lines.Scan(), "no line")
		assert.Equal(t, lines.Text(), "event: changed")
		d.stop()
		for lines.Scan() { //nolint:revive // what was written before may still come.
		}
		assert.NoError(t, lines.Err(), "the stream's end")
	})

	t.Run("the button that pays and reloads sends the same key again", func(t *testing.T) {
		t.Parallel()
		b, d := s.open(t, true, "")
		b.choose("slow")
		key := b.text("#keyed [data-show=key]")
		b.patient()
		b.press("reload keyed")
		b.waitFor("#keyed .tries li:nth-child(2)")
		assert.Contains(t, b.text("#keyed .tries"), "page reloaded before the answer")
		b.waitForState("keyed", "paid")
		assert.Equal(t, b.text("#keyed [data-show=key]"), key)
		assert.Equal(t, d.ledger("keyed"), paidOnce)
	})

	t.Run("a page reloaded between two sends goes on with the same key, and the order is paid once", func(t *testing.T) {
		t.Parallel()
		b, d := s.open(t, true, "?fault=reply-lost")
		key := b.text("#keyed [data-show=key]")
		// The till would send again in an hour; the page loaded again knows
		// nothing of that.
		evaluate[string](b, `document.querySelector("#shop").dataset.pause = document.querySelector("#shop").dataset.longestPause = "3600000"`)
		b.press("pay keyed")
		b.waitForState("keyed", "unknown")
		b.reload()
		b.waitForState("keyed", "paid")
		assert.Equal(t, b.text("#keyed [data-show=key]"), key)
		tries := b.text("#keyed .tries")
		assert.Contains(t, tries, "no answer201 Created · replayed")
		assert.True(t, !strings.Contains(tries, "page reloaded"), "nothing was on its way: %s", tries)
		assert.Equal(t, d.arrived("keyed"), 2, "requests")
		assert.Equal(t, d.ledger("keyed"), paidOnce)
	})

	t.Run("the whole page works by keyboard", func(t *testing.T) {
		t.Parallel()
		b, _ := s.open(t, true, "?fault=none")
		b.do("focus", chromedp.Focus(chromedp.CSS(`input[value="none"]`)))
		// Two down from "nothing" is the lost reply, as in every group of radio
		// buttons; from there the tab key leads to the tills.
		b.do("choose", chromedp.KeyEvent(kb.ArrowDown+kb.ArrowDown))
		assert.Equal(t, evaluate[string](b, `document.querySelector("input[name=fault]:checked").value`), "reply-lost")
		for range 3 {
			b.do("tab", chromedp.KeyEvent("\t"))
		}
		assert.Equal(t, evaluate[string](b, `document.activeElement.value`), "twice all")
		b.do("enter", chromedp.KeyEvent("\r"))
		b.waitForState("keyed", "paid")
		b.waitForState("keyless", "paid-again")
	})
}
