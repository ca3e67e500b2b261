package shop_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/crowd"
	"github.com/semel-dev/semel/cmd/examples/payments/shop"
	"github.com/semel-dev/semel/internal/assert"
)

func TestVendoredFilesAreTheOnesThatWereRecorded(t *testing.T) {
	t.Parallel()
	const dir = "assets/vendor"
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	assert.NoError(t, err)
	recorded := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		recorded[name] = sum
	}
	files, err := os.ReadDir(dir)
	assert.NoError(t, err)
	assert.Equal(t, len(files), len(recorded)+1, "files, with the record itself")
	for name, want := range recorded {
		content, err := os.ReadFile(filepath.Join(dir, name))
		assert.NoError(t, err)
		sum := sha256.Sum256(content)
		assert.Equal(t, hex.EncodeToString(sum[:]), want, "%s", name)
	}
}

// lost is the log of one order whose answer did not arrive.
func lost(order string) map[string]any {
	return map[string]any{
		"door": "keyed", "order": order, "method": "POST", "path": "/payments", "ended": true,
		"lines": []string{
			`{"time":"2026-01-01T00:00:00.001Z","msg":"request passed on","key":"0123456789ab"}`,
			`{"time":"2026-01-01T00:00:00.002Z","msg":"semel: event","event":"claimed","attempt":1}`,
			`{"time":"2026-01-01T00:00:00.003Z","msg":"asks the bank","charge_key":"c0ffee00-1"}`,
			`{"time":"2026-01-01T00:00:00.004Z","msg":"charge","answer":"taken","amount":2500}`,
			`{"time":"2026-01-01T00:00:00.006Z","msg":"reply lost","status":201}`,
			`{"time":"2026-01-01T00:00:00.005Z","msg":"semel: event","event":"done","attempt":1}`,
		},
	}
}

// sentences are the hops that the page shows, in words.
func sentences(page string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`<span class="unseen">([^<]*)</span>`).FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return out
}

func TestTheLogSaysWhatItsKeysAndWarningsAre(t *testing.T) {
	t.Parallel()
	front, base := newShop(t, shop.Config{})
	request := lost("o_1")
	request["key"] = "0123456789ab"
	front.log = []map[string]any{request}
	v := visit(t, base)
	for _, want := range []string{"key digest 0123456789ab", "SHA-256 digest", "WARN at an executed request says", "beginning of the key’s digest"} {
		assert.Contains(t, v.page, want)
	}
}

func TestStory(t *testing.T) {
	t.Parallel()

	t.Run("the latest order is told in the order of time, as a picture and in words", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		front.log = []map[string]any{lost("o_1"), lost("o_2")}
		v := visit(t, base)
		assert.Equal(t, sentences(v.page), []string{
			"browser to service: send 1, key 01234567",
			"service to store: claims the key",
			"service to bank: charge as c0ffee00",
			"bank: takes $25.00",
			"service to store: commits payment and answer",
			"service to browser, lost on the way: 201 created",
			"browser: no answer: I do not know",
		})
		assert.Equal(t, strings.Count(v.page, `<li class="hop ask`), 4)
		assert.Contains(t, v.page, `<code>&#43;0.001 s semel: event event=claimed attempt=1</code>`)
		v.open("/shop/live")
		assert.Equal(t, len(sentences(v.page)), 7, "hops of the fragment")
	})

	t.Run("who guesses first sees what the browser saw, and then the rest", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		order := v.fields().Get("keyed-order")
		front.log = []map[string]any{lost(order)}
		front.log[0]["outcome"] = "executed"
		v.open("/?guess=on")
		assert.Equal(t, sentences(v.page), []string{"browser to service: send 1, key 01234567", "browser: no answer: I do not know"})
		assert.Contains(t, v.page, "No answer came. Was the customer charged?")
		for _, spoiler := range []string{"takes $25.00", "answer=taken", "&#34;answer&#34;", "asks the bank charge_key", "event=claimed", "<span>executed", "reply lost status=201"} {
			assert.True(t, !strings.Contains(v.page, spoiler), "%s shows before the guess", spoiler)
		}
		v.open("/shop/live?guess=on&keyed-order=" + order)
		assert.True(t, !strings.Contains(v.page, "answer=taken"), "the answer comes before the guess")
		v.open("/?guess=on")
		v.press("no keyed", url.Values{"guess": {"on"}})
		assert.Equal(t, len(sentences(v.page)), 7, "hops after the guess")
		assert.Contains(t, v.page, "charge answer=taken amount=2500")
		assert.Contains(t, v.page, "You said no. It was charged once. The client could not know.")
		v.press("yes keyed", url.Values{"guess": {"on"}})
		assert.Contains(t, v.page, "You said no.")
		assert.Equal(t, len(front.sent), 0, "requests")
	})

	t.Run("a guess is judged by what was true when it was made", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		order := v.fields().Get("keyed-order")
		silent := lost(order)
		silent["lines"] = []string{`{"time":"2026-01-01T00:00:00.001Z","msg":"request lost"}`}
		front.log = []map[string]any{silent}
		v.press("no keyed", url.Values{"guess": {"on"}})
		assert.Contains(t, v.page, "You said no, and you were right. It was not charged. The client could not know.</p>")
		front.log = []map[string]any{silent, lost(order)}
		v.press("step keyed", url.Values{"guess": {"on"}})
		assert.Contains(t, v.page, "You said no, and you were right. It was not charged. The client could not know. It has been charged once since.")
	})

	t.Run("a guess is asked only about the page's own order, also when another came later", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		own := v.fields().Get("keyed-order")
		front.log = []map[string]any{lost("o_other")}
		v.open("/?guess=on")
		assert.Equal(t, len(sentences(v.page)), 7, "hops of the other's order")
		for _, log := range [][]map[string]any{{lost("o_other"), lost(own)}, {lost(own), lost("o_other")}} {
			front.log = log
			for _, page := range []string{"/?guess=on", "/shop/live?guess=on&keyed-order=" + own} {
				v.open(page)
				assert.Contains(t, v.page, "No answer came. Was the customer charged?")
				assert.Equal(t, len(sentences(v.page)), 2, "hops of the own order")
			}
		}
	})

	t.Run("who guesses or goes step by step stays with the page's own order, whatever others send", func(t *testing.T) {
		t.Parallel()
		for _, mode := range []string{"guess", "step"} {
			front, base := newShop(t, shop.Config{})
			v := visit(t, base)
			own := v.fields().Get("keyed-order")
			front.log = []map[string]any{lost(own), lost("o_other"), lost("o_other")}
			v.press("no keyed", url.Values{mode: {"on"}, "keyed-shown": {"100"}})
			assert.Equal(t, len(sentences(v.page)), 7, "hops of the own order with %s", mode)
			v.open("/shop/live?" + mode + "=on&keyed-shown=100&keyed-order=" + own)
			assert.Equal(t, len(sentences(v.page)), 7, "hops of the own order in the news with %s", mode)
			assert.Contains(t, v.page, "You said no. It was charged once.")
			v.open("/shop/live?keyed-order=" + own)
			assert.Equal(t, len(sentences(v.page)), 14, "hops of the latest order, which was sent twice")
		}
	})

	t.Run("a guess that cannot be judged is not taken", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		front.broken = true
		v.press("no keyed", nil)
		assert.Equal(t, v.status, http.StatusBadGateway)
		assert.Contains(t, v.page, "The guess was not taken: GET /demo/log was answered with 500")
	})

	t.Run("a refusal after a lost reply leaves the guess: it says nothing of the first send", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		refused := lost(v.fields().Get("keyed-order"))
		refused["lines"] = append(refused["lines"].([]string), `{"time":"2026-01-01T00:00:01Z","msg":"reply passed on","status":422}`)
		front.log = []map[string]any{refused}
		v.open("/?guess=on")
		assert.Contains(t, v.page, "No answer came. Was the customer charged?")
	})

	t.Run("an order that has its answer leaves nothing to guess", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		paid := lost("o_1")
		paid["lines"] = append(paid["lines"].([]string), `{"time":"2026-01-01T00:00:01Z","msg":"reply passed on","status":201}`)
		front.log = []map[string]any{paid}
		v := visit(t, base)
		v.open("/?guess=on")
		assert.Equal(t, len(sentences(v.page)), 8, "hops")
	})

	t.Run("step by step there is one hop more with each press, and the money at the end", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		front.log = []map[string]any{lost("o_1")}
		v := visit(t, base)
		v.open("/?step=on")
		for n := 1; n < 7; n++ {
			assert.Equal(t, len(sentences(v.page)), n, "hops")
			assert.Contains(t, v.page, "The money is shown after the last step.")
			v.press("step keyed", url.Values{"step": {"on"}})
		}
		assert.Equal(t, len(sentences(v.page)), 7, "hops at the end")
		assert.True(t, !strings.Contains(v.page, "The money is shown after"), "the money is still hidden")
	})
}

func TestBreaking(t *testing.T) {
	t.Parallel()

	t.Run("a new key for each send is another key from the second send on", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		broken := url.Values{"newkeys": {"on"}}
		v.press("pay keyed", broken)
		v.press("pay keyed", broken)
		assert.True(t, front.sent[0].Key != front.sent[1].Key, "both sends carry %s", front.sent[0].Key)
		assert.Equal(t, front.sent[1].Order, front.sent[0].Order, "order")
		state, _, _ := v.says("keyed")
		assert.Equal(t, state, "paid-again")
	})

	t.Run("another amount goes out from the second send on, under the same key", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.press("twice keyed", url.Values{"otheramount": {"on"}})
		assert.Equal(t, front.sent[0].Key, front.sent[1].Key, "key")
		bodies := front.sent[0].Body + front.sent[1].Body
		assert.Contains(t, bodies, `"amount":2500`)
		assert.Contains(t, bodies, `"amount":2600`)
	})

	t.Run("lease and bank are set with the payment, and left as they are where nothing was chosen", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		front.settings["/demo/bank"] = map[string]any{"dedupe": false}
		v := visit(t, base)
		assert.Contains(t, v.page, ">Now: a lease of 2s, a bank that ignores its keys.</p>")
		v.press("pay keyed", nil)
		assert.Equal(t, front.settings, map[string]map[string]any{"/demo/bank": {"dedupe": false}})

		v.open("/?lease=500ms&bank=remembers")
		assert.Contains(t, v.page, "<b>Not set yet, but with your next payment or run: a lease of 500ms, a bank that looks at its keys.</b>")
		v.press("pay keyed", url.Values{"lease": {"500ms"}, "bank": {"remembers"}})
		assert.Equal(t, front.settings, map[string]map[string]any{"/demo/service": {"lease": "500ms"}, "/demo/bank": {"dedupe": true}})
		assert.Contains(t, v.page, ">Now: a lease of 500ms, a bank that looks at its keys.</p>")
		assert.Equal(t, len(front.sent), 2, "requests")
	})

	t.Run("the link has the settings that are left as they are, for elsewhere they may be others", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		front.settings["/demo/service"] = map[string]any{"lease": "100ms"}
		assert.Contains(t, visit(t, base).page, `<a id="link" href="/?bank=remembers&amp;fault=killed-after-charge&amp;lease=100ms&amp;`)
	})

	t.Run("the link may have any lease that the service has, and the page offers it", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		front.settings["/demo/service"] = map[string]any{"lease": "3s"}
		v := visit(t, base)
		link := regexp.MustCompile(`<a id="link" href="([^"]*)"`).FindStringSubmatch(v.page)
		v.open(html.UnescapeString(link[1]))
		assert.Equal(t, v.status, http.StatusOK)
		assert.Contains(t, v.page, "<option selected>3s</option>")
		v.open("/?lease=60000ms")
		assert.Equal(t, v.status, http.StatusBadRequest)
		assert.Contains(t, v.page, "lease is &#34;60000ms&#34;; it must be a duration from 100ms to 30s")
	})
}

func TestCrowd(t *testing.T) {
	t.Parallel()

	t.Run("a run is started with what the form says, and its link has it all", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.press("run", url.Values{"seed": {"7"}, "shoppers": {"20"}, "trouble": {"5"}, "newkeys": {"on"}})
		assert.Equal(t, front.settings["/demo/crowd"], map[string]any{"seed": 7.0, "shoppers": 20.0, "trouble": 5.0, "newKeys": true})
		const link = "/?bank=remembers&amp;fault=none&amp;lease=2s&amp;newkeys=on&amp;seed=7&amp;shoppers=20&amp;times=1&amp;trouble=5"
		assert.Contains(t, v.page, link)
		v.open(strings.ReplaceAll(link, "&amp;", "&"))
		assert.Contains(t, v.page, link)
		assert.Contains(t, v.page, `name="newkeys" value="on" checked`)
	})

	t.Run("a link that cannot be meant is refused by field", func(t *testing.T) {
		t.Parallel()
		_, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.open("/?shoppers=0")
		assert.Equal(t, v.status, http.StatusBadRequest)
		assert.Contains(t, v.page, "The link cannot be used: shoppers is &#34;0&#34;, want a number from 1 to 1000")
	})

	t.Run("its progress and its table are shown", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		front.report = crowd.Report{
			Settings: crowd.Settings{Seed: 7, Shoppers: 20}, Running: true, Done: 31,
			Doors: []crowd.Part{{Door: payments.Keyed}, {Door: payments.Keyless}, {Door: payments.Naive}},
		}
		v := visit(t, base)
		assert.Contains(t, v.page, `<progress max="60" value="31"`)

		holds := true
		front.report.Running, front.report.Holds = false, &holds
		for i := range front.report.Doors {
			front.report.Doors[i].Ledger = &payments.Account{}
		}
		front.report.Doors[1] = crowd.Part{
			Door: payments.Keyless, Want: 40_000, Sends: 29, Silent: 9,
			Ledger: &payments.Account{Orders: 20, Payments: 21, Charges: 23, Charged: 20, Taken: 46_000},
		}
		v.open("/shop/live")
		assert.Contains(t, v.page, `<tr data-row="keyless" class="over"><th scope="row">No key</th><td>20</td><td>23</td><td class="extra">3</td>`+
			`<td>$400.00</td><td>$460.00</td><td class="extra">$60.00</td><td>29</td><td>9</td><td>0</td></tr>`)
		assert.Contains(t, v.page, "At the till with Semel every order was answered, charged and stored once.")
	})

	t.Run("a run that the demo refuses is said so", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		front.broken = true
		v.press("run", nil)
		assert.Equal(t, v.status, http.StatusBadGateway)
		assert.Contains(t, v.page, "The run was not started: GET /demo/crowd was answered with 500")
	})

	t.Run("a run is started under the chosen settings", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		visit(t, base).press("run", url.Values{"bank": {"forgets"}})
		assert.Equal(t, front.settings["/demo/bank"], map[string]any{"dedupe": false})
		assert.Equal(t, front.settings["/demo/crowd"]["shoppers"], any(1000.0))
	})

	t.Run("while a run is under way another is refused in the demo's words, and sets nothing", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		front.report.Running, front.busy = true, true
		v := visit(t, base)
		v.press("run", url.Values{"bank": {"forgets"}})
		assert.Equal(t, v.status, http.StatusConflict)
		assert.Contains(t, v.page, "The run was not started: a run is under way: start another when it has ended.")
		assert.Equal(t, len(front.settings), 0, "settings")
	})
}

func TestPagesThatFetchTheNewsTogetherShareOneRendering(t *testing.T) {
	t.Parallel()
	const pages = 10
	for name, c := range map[string]struct {
		query       string
		least, most int
	}{
		"all alike":                   {"?keyed-order=o_%d&keyed-shown=%d", 1, pages / 2},
		"each to guess its own order": {"?guess=on&keyed-order=o_%d&keyed-shown=%d", pages, pages},
		"each in steps of its own":    {"?step=on&keyed-order=o_%d&from=%d", pages, pages},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front, base := newShop(t, shop.Config{})
			var asked sync.Once
			front.reading = func() {
				asked.Do(func() {
					assert.Eventually(t, "all pages have asked", func() bool { return front.lives.Load() == pages })
				})
			}
			var all sync.WaitGroup
			for i := range pages {
				all.Go(func() {
					resp, err := http.Get(base + "/shop/live" + fmt.Sprintf(c.query, i, i))
					if err != nil {
						t.Error(err)
						return
					}
					defer resp.Body.Close()
					body, err := io.ReadAll(resp.Body)
					if err != nil {
						t.Error(err)
					}
					assert.Contains(t, string(body), `<div id="account-keyed"`)
				})
			}
			all.Wait()
			front.mu.Lock()
			defer front.mu.Unlock()
			assert.True(t, c.least <= front.reads && front.reads <= c.most, "%d renderings for %d pages", front.reads, pages)
		})
	}
}

func TestHtmxWaitsForItsExtension(t *testing.T) {
	t.Parallel()
	_, base := newShop(t, shop.Config{})
	// A deferred htmx begins before an extension that loads after it, and the
	// page then never hears the stream.
	assert.Contains(t, visit(t, base).page, `<script src="/shop/vendor/htmx.min.js"></script>`+"\n"+
		`<script src="/shop/vendor/hx-sse.min.js"></script>`)
}
