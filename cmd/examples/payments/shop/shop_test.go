package shop_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/shop"
	"github.com/semel-dev/semel/internal/assert"
)

func TestPage(t *testing.T) {
	t.Parallel()

	t.Run("every answer forbids what is not the page's own", func(t *testing.T) {
		t.Parallel()
		_, base := newShop(t, shop.Config{})
		v := visit(t, base)
		want := "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
		for _, path := range []string{"/", "/shop/live", "/shop/shop.js", "/shop/shop.css", "/shop/icon.svg", "/shop/vendor/htmx.min.js", "/shop/semel.js", "/checkout", "/none"} {
			v.open(path)
			assert.Equal(t, v.header.Get("Content-Security-Policy"), want, "policy of %s", path)
			assert.Equal(t, v.header.Get("X-Content-Type-Options"), "nosniff", "sniffing of %s", path)
		}
		v.open("/")
		v.press("pay all", url.Values{"fault": {"reply-lost"}})
		posted := v.page
		for _, path := range []string{"/", "/shop/live", "/checkout", "/checkout/receipt", "/none"} {
			v.open(path)
			posted += v.page
		}
		v.page = posted
		for _, inline := range []string{"<style", "style=", "onclick", "<script>", "http://", "https://"} {
			assert.True(t, !strings.Contains(v.page, inline), "the page has %s in it", inline)
		}
	})

	t.Run("its files are served with their types", func(t *testing.T) {
		t.Parallel()
		_, base := newShop(t, shop.Config{})
		v := visit(t, base)
		for path, want := range map[string]string{
			"/":              "text/html; charset=utf-8",
			"/shop/shop.js":  "text/javascript; charset=utf-8",
			"/shop/till.js":  "text/javascript; charset=utf-8",
			"/shop/shop.css": "text/css; charset=utf-8",
			"/shop/icon.svg": "image/svg+xml",

			"/checkout":                  "text/html; charset=utf-8",
			"/checkout/receipt":          "text/html; charset=utf-8",
			"/shop/checkout.js":          "text/javascript; charset=utf-8",
			"/shop/semel.js":             "text/javascript; charset=utf-8",
			"/shop/diagram.css":          "text/css; charset=utf-8",
			"/shop/vendor/htmx.min.js":   "text/javascript; charset=utf-8",
			"/shop/vendor/hx-sse.min.js": "text/javascript; charset=utf-8",
		} {
			v.open(path)
			assert.Equal(t, v.status, http.StatusOK, "status of %s", path)
			assert.Equal(t, v.header.Get("Content-Type"), want, "type of %s", path)
		}
	})

	t.Run("a page that does not exist says so", func(t *testing.T) {
		t.Parallel()
		_, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.open("/<b>none")
		assert.Equal(t, v.status, http.StatusNotFound)
		assert.Contains(t, v.page, "There is no page at /&lt;b&gt;none")
	})

	t.Run("the key is made when the page opens and is no other page's", func(t *testing.T) {
		t.Parallel()
		_, base := newShop(t, shop.Config{})
		a, b := visit(t, base).fields(), visit(t, base).fields()
		for _, name := range []string{"keyed-order", "keyed-key", "keyed-next-order", "keyed-next-key", "keyless-order"} {
			assert.True(t, a.Get(name) != "", "the field %s is empty", name)
			assert.True(t, a.Get(name) != b.Get(name), "two pages have the same %s", name)
		}
		assert.Equal(t, a.Has("keyless-key"), false, "a key at the till without one")
	})

	t.Run("what the front cannot tell, the page says it cannot read", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		front.broken = true
		v := visit(t, base)
		assert.Equal(t, v.status, http.StatusOK)
		assert.Contains(t, v.page, "The ledger cannot be read.")
		assert.Contains(t, v.page, "Cannot read the log: GET /demo/log was answered with 500")
	})

	t.Run("hostile words stay words", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		const evil = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`
		front.log = []map[string]any{{
			"door": evil, "key": evil, "method": evil, "path": evil, "outcome": evil, "fault": evil,
			"lines": []string{evil, `{"msg":"` + "<script>" + `","x":"<img src=x>"}`},
		}}
		front.answer = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == payments.Keyed.Path() {
				w.Header().Set("Semel-Outcome", evil)
			}
			payments.WriteJSON(w, http.StatusBadRequest, map[string]string{"title": evil, "id": evil})
		}
		v := visit(t, base)
		v.press("pay all", nil)
		for _, raw := range []string{"<script>alert", "<img src=x", "<script>"} {
			assert.True(t, !strings.Contains(v.page, raw), "the page has %s in it", raw)
		}
		_, _, tries := v.says("keyed")
		assert.Equal(t, tries, []string{"400 Bad Request · " + evil + " · payment " + payments.Short(evil)})
		_, _, tries = v.says("keyless")
		assert.Equal(t, tries, []string{"400 Bad Request · payment " + payments.Short(evil) + " · " + evil})
	})
}

func TestTheScriptGoesByTheServersRules(t *testing.T) {
	t.Parallel()
	_, base := newShop(t, shop.Config{})
	page := visit(t, base).page
	for _, rule := range []string{
		`<script type="application/json" id="rules">{"told":[{"from":200,"to":299,"state":"paid"},{"from":300,"to":407,"state":"refused"},{"from":408,"to":409,"state":"again"},`,
		`{"from":500,"to":599,"state":"again"}]`,
		`"one":{"again":{"again":"again","paid":"paid","refused":"doubt","unknown":"again"},`,
		`"several":{"again":{"again":"again","paid":"paid-again","refused":"doubt","unknown":"again"},`,
		`"settled":["paid","paid-again","refused"],"orderLength":10,"keyLength":26,"cookie":"shop_orders"}</script>`,
	} {
		assert.Contains(t, page, rule)
	}
}

func TestPaying(t *testing.T) {
	t.Parallel()

	t.Run("the till with a key sends order, key and body", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		form := v.fields()
		v.press("pay keyed", nil)
		assert.Equal(t, front.sent, []sent{{
			Door:  payments.Keyed,
			Key:   `"` + form.Get("keyed-key") + `"`,
			Order: form.Get("keyed-order"),
			Body:  `{"amount":2500,"currency":"USD","recipientId":"r_123"}`,
		}})
		state, sentence, tries := v.says("keyed")
		assert.Equal(t, state, "paid")
		assert.Equal(t, sentence, "Paid. Sent again with this key, it gets the same answer.")
		assert.Equal(t, tries, []string{"201 Created · executed · payment p_1"})
		assert.Contains(t, v.page, "<strong>$25.00</strong> <span>taken for 1 order of $25.00</span>")
	})

	t.Run("the till without a key sends none", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		form := v.fields()
		v.press("pay keyless", nil)
		assert.Equal(t, front.sent, []sent{{
			Door:  payments.Keyless,
			Order: form.Get("keyless-order"),
			Body:  `{"amount":2500,"currency":"USD","recipientId":"r_123"}`,
		}})
		state, sentence, _ := v.says("keyless")
		assert.Equal(t, state, "paid")
		assert.Equal(t, sentence, "Paid.")
	})

	t.Run("no answer is called no answer, and the same key asks again", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.press("pay keyed", url.Values{"fault": {"reply-lost"}})
		state, sentence, tries := v.says("keyed")
		assert.Equal(t, state, "unknown")
		assert.Contains(t, sentence, "No answer. Was it charged? You cannot know.")
		assert.Equal(t, tries, []string{"no answer"})
		assert.Contains(t, v.page, `data-show="pay">Send again</button>`)

		v.press("pay keyed", url.Values{"fault": {"reply-lost"}})
		state, _, tries = v.says("keyed")
		assert.Equal(t, state, "paid")
		assert.Equal(t, tries, []string{"no answer", "201 Created · replayed · payment p_1"})
		assert.Equal(t, front.sent[1], front.sent[0], "the second send")
		assert.Equal(t, front.ledger[payments.Keyed].Charges, 1)
		assert.Contains(t, v.page, `data-verdict="right"`)
	})

	t.Run("without a key the second send is charged too, and the page shows it", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.press("pay keyless", url.Values{"fault": {"reply-lost"}})
		v.press("pay keyless", nil)
		state, sentence, _ := v.says("keyless")
		assert.Equal(t, state, "paid-again")
		assert.Contains(t, sentence, "Paid, at least once.")
		assert.Equal(t, front.sent[1], front.sent[0], "the second send is for the same order")
		assert.Contains(t, v.page, "<strong>$50.00</strong> <span>taken for 1 order of $25.00</span>")
		assert.Contains(t, v.page, `<p class="verdict" data-verdict="over">1 charge too many.</p>`)
	})

	t.Run("a lost request is sent once by the page, whatever net/http would like", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.press("pay keyed", url.Values{"fault": {"request-lost"}})
		assert.Equal(t, len(front.sent), 1, "requests that arrived")
	})

	t.Run("a reload sends the same order again and meets no fault again", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.press("pay all", url.Values{"fault": {"reply-lost"}})
		v.reload()
		assert.Equal(t, front.met, []string{"reply-lost", "reply-lost", "reply-lost", "none", "none", "none"}, "faults")
		assert.Equal(t, front.ledger[payments.Keyed], payments.Account{Orders: 1, Charges: 1, Charged: 1, Taken: 2500})
		assert.Equal(t, front.ledger[payments.Keyless], payments.Account{Orders: 1, Charges: 2, Charged: 1, Taken: 5000})
	})

	t.Run("an order's first sends meet the fault, as many as were chosen, and later ones none", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		chosen := url.Values{"fault": {"request-lost"}, "times": {"2"}}
		for range 3 {
			v.press("pay keyed", chosen)
		}
		v.open("/")
		v.press("pay keyed", chosen)
		assert.Equal(t, front.met, []string{"request-lost", "request-lost", "none", "request-lost"}, "faults of two orders")
	})

	t.Run("who chooses nothing says so: what somebody else has armed is not theirs", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		visit(t, base).press("pay keyed", url.Values{"fault": {"none"}})
		assert.Equal(t, front.met, []string{"none"})
	})

	t.Run("what is paid stays paid, whatever a later send hears", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.press("pay keyed", nil)
		front.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
		v.press("pay keyed", nil)
		state, _, tries := v.says("keyed")
		assert.Equal(t, state, "paid")
		assert.Equal(t, tries, []string{"201 Created · executed · payment p_1", "502 Bad Gateway"})
	})

	t.Run("a refusal after no answer leaves the order open, for the first may have been charged", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.press("pay keyed", url.Values{"fault": {"reply-lost"}})
		front.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnprocessableEntity) }
		for range 2 {
			v.press("pay keyed", nil)
			state, sentence, _ := v.says("keyed")
			assert.Equal(t, state, "doubt")
			assert.Contains(t, sentence, "whether another was charged is still not known")
		}
		front.answer = nil
		v.press("pay keyed", nil)
		state, _, _ := v.says("keyed")
		assert.Equal(t, state, "paid")
	})

	t.Run("a double click sends both at once", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		var both sync.WaitGroup
		both.Add(2)
		// Neither is answered before the other has arrived.
		front.arrived = func(*http.Request) { both.Done(); both.Wait() }
		v := visit(t, base)
		v.press("twice keyed", nil)
		assert.Equal(t, len(front.sent), 2, "requests")
		assert.Equal(t, front.sent[1], front.sent[0], "the second request")
		assert.Contains(t, v.page, "sent 2 times")
	})

	t.Run("an answer that settles nothing leaves the order open", func(t *testing.T) {
		t.Parallel()
		for status, want := range map[int]string{
			http.StatusConflict: "again", http.StatusTooManyRequests: "again", http.StatusTooEarly: "again",
			http.StatusRequestTimeout: "again", http.StatusBadGateway: "again", http.StatusServiceUnavailable: "again",
			http.StatusPaymentRequired: "refused", http.StatusUnprocessableEntity: "refused",
			http.StatusOK: "paid",
		} {
			front, base := newShop(t, shop.Config{})
			front.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
			v := visit(t, base)
			v.press("pay keyed", nil)
			state, _, tries := v.says("keyed")
			assert.Equal(t, state, want, "state after %d", status)
			assert.Equal(t, len(tries), 1, "tries after %d", status)
		}
	})

	t.Run("an answer that comes too late is no answer", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{AnswerWithin: 50 * time.Millisecond})
		front.arrived = func(r *http.Request) { <-r.Context().Done() }
		v := visit(t, base)
		v.press("pay keyed", nil)
		state, _, _ := v.says("keyed")
		assert.Equal(t, state, "unknown")
	})

	t.Run("a reader who leaves takes nothing back", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		page, err := shop.New(shop.Config{Front: base})
		assert.NoError(t, err)
		form := visit(t, base).fields()
		form.Set("do", "pay keyed")
		left, leave := context.WithCancel(t.Context())
		leave()
		req := httptest.NewRequestWithContext(left, http.MethodPost, base+"/shop/pay", strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		page.ServeHTTP(httptest.NewRecorder(), req)
		assert.Equal(t, len(front.sent), 1, "requests")
	})
}

func TestOrders(t *testing.T) {
	t.Parallel()

	t.Run("no other site's page brings the open orders along", func(t *testing.T) {
		t.Parallel()
		_, base := newShop(t, shop.Config{})
		v := visit(t, base)
		assert.Contains(t, v.header.Get("Set-Cookie"), "shop_orders=")
		assert.Contains(t, v.header.Get("Set-Cookie"), "; SameSite=Strict")
	})

	t.Run("a page opened again before the answer has the same order and key", func(t *testing.T) {
		t.Parallel()
		_, base := newShop(t, shop.Config{})
		v := visit(t, base)
		before := v.fields()
		v.press("pay all", url.Values{"fault": {"request-lost"}})
		v.open("/")
		after := v.fields()
		for _, name := range []string{"keyed-order", "keyed-key", "keyless-order"} {
			assert.Equal(t, after.Get(name), before.Get(name), "%s", name)
		}
	})

	t.Run("a page opened after the answer has the next order", func(t *testing.T) {
		t.Parallel()
		_, base := newShop(t, shop.Config{})
		v := visit(t, base)
		before := v.fields()
		v.press("pay all", nil)
		v.open("/")
		after := v.fields()
		assert.Equal(t, after.Get("keyed-order"), before.Get("keyed-next-order"))
		assert.Equal(t, after.Get("keyed-key"), before.Get("keyed-next-key"))
		assert.Equal(t, after.Get("keyless-order"), before.Get("keyless-next-order"))
	})

	t.Run("paying at both tills after a settled order is the next order, also when posted again", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.press("pay all", nil)
		v.press("pay all", nil)
		v.reload()
		assert.Equal(t, front.ledger[payments.Keyed], payments.Account{Orders: 2, Charges: 2, Charged: 2, Taken: 5000})
		assert.Equal(t, front.ledger[payments.Keyless], payments.Account{Orders: 2, Charges: 3, Charged: 2, Taken: 7500})
	})

	t.Run("sending a settled order again at one till is the same order", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.press("pay keyed", nil)
		v.press("pay keyed", nil)
		assert.Equal(t, front.ledger[payments.Keyed], payments.Account{Orders: 1, Charges: 1, Charged: 1, Taken: 2500})
		_, _, tries := v.says("keyed")
		assert.Equal(t, tries, []string{"201 Created · executed · payment p_1", "201 Created · replayed · payment p_1"})
	})

	t.Run("a new order has another key, and the other till keeps what it knows", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.press("pay all", url.Values{"fault": {"reply-lost"}})
		before := v.fields()
		v.press("new keyed", nil)
		after := v.fields()
		assert.True(t, after.Get("keyed-order") != before.Get("keyed-order"), "the order is still %s", after.Get("keyed-order"))
		assert.True(t, after.Get("keyed-key") != before.Get("keyed-key"), "the key is still %s", after.Get("keyed-key"))
		assert.Equal(t, after.Get("keyless-order"), before.Get("keyless-order"))
		state, _, _ := v.says("keyed")
		assert.Equal(t, state, "open")
		state, _, _ = v.says("keyless")
		assert.Equal(t, state, "unknown")
		assert.Equal(t, len(front.sent), 3, "requests")
	})

	t.Run("a cookie of the page is used, and one that it did not make is not", func(t *testing.T) {
		t.Parallel()
		_, base := newShop(t, shop.Config{})
		const key = "k_aaaaaaaaaaaaaaaaaaaaaaaaaa"
		good := "o_aaaaaaaaaa.o_aaaaaaaaaa." + key + ".o_aaaaaaaaaa." + key
		orders := func(cookie string) int {
			v := &visitor{t: t, base: base, client: http.DefaultClient}
			req, err := http.NewRequest(http.MethodGet, base+"/", nil)
			assert.NoError(t, err)
			req.Header.Set("Cookie", "shop_orders="+cookie)
			v.do(req)
			assert.Equal(t, v.status, http.StatusOK)
			return strings.Count(v.page, `value="o_aaaaaaaaaa"`)
		}
		assert.Equal(t, orders(good), 3, "orders of the page's own cookie")
		for _, bad := range []string{
			"", "a.b.c.d.e", good + ".", good + ".o_aaaaaaaaaa", strings.TrimSuffix(good, "a"), strings.ToUpper(good),
			"o_aaaaaaaaaa.o_aaaaaaaaaa..o_aaaaaaaaaa." + key, strings.Replace(good, key, "<b>", 1),
			strings.TrimSuffix(good, "."+key),
		} {
			assert.Equal(t, orders(bad), 0, "orders of the cookie %q", bad)
		}
	})
}
