package shop_test

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments/shop"
	"github.com/semel-dev/semel/internal/assert"
)

func TestRefusing(t *testing.T) {
	t.Parallel()

	t.Run("a form that the page did not make is refused by field, and nothing is sent", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		good := v.fields()
		for _, bad := range []struct{ field, value, want string }{
			{"do", "", `do is &#34;&#34;, want one of pay, twice, new, yes, no, step, and a till, or run`},
			{"do", "steal keyed", `do is &#34;steal keyed&#34;`},
			{"do", "pay nowhere", `want the till keyless, naive, keyed or all after pay`},
			{"fault", "<b>", `fault is &#34;&lt;b&gt;&#34;, which this shop does not know`},
			{"times", "0", `times is &#34;0&#34;, want a number from 1 to 3`},
			{"times", "4", `times is &#34;4&#34;`},
			{"times", "many", `times is &#34;many&#34;`},
			{"keyed-order", "o_1", `keyed-order is &#34;o_1&#34;, want the order number that this page made`},
			{"keyed-key", "", `keyed-key is &#34;&#34;, want the key that this page made`},
			{"keyed-key", "k_aaaaaaaaaaaaaaaaaaaaaaaaa\"", `want the key that this page made`},
			{"keyed-next-key", "x", `keyed-next-key is &#34;x&#34;`},
			{"keyless-order", "", `keyless-order is &#34;&#34;`},
			{"keyless-next-order", "", `keyless-next-order is &#34;&#34;`},
			{"keyed-sent", "-1", `keyed-sent is &#34;-1&#34;, want how often the order was sent`},
			{"keyless-sent", "x", `keyless-sent is &#34;x&#34;`},
			{"keyed-state", "lost", `keyed-state is &#34;lost&#34;, want a state of an order`},
			{"naive-key", "", `naive-key is &#34;&#34;, want the key that this page made`},
			{"keyed-shown", "-1", `keyed-shown is &#34;-1&#34;, want how many steps are shown`},
			{"lease", "1m", `lease is &#34;1m&#34;; it must be a duration from 100ms to 30s`},
			{"bank", "robs", `bank is &#34;robs&#34;, want remembers or forgets`},
			{"seed", "-1", `seed is &#34;-1&#34;, want a whole number`},
			{"shoppers", "1001", `shoppers is &#34;1001&#34;, want a number from 1 to 1000`},
			{"trouble", "x", `trouble is &#34;x&#34;, want a number from 0 to 20`},
			{"keyless-state", "", `keyless-state is &#34;&#34;`},
		} {
			form := url.Values{"do": {"pay all"}}
			maps.Copy(form, good)
			form.Set(bad.field, bad.value)
			if bad.field == "seed" || bad.field == "shoppers" || bad.field == "trouble" {
				form.Set("do", "run")
			}
			v.post(form)
			assert.Equal(t, v.status, http.StatusBadRequest, "%s=%q", bad.field, bad.value)
			assert.Contains(t, v.page, "Nothing was sent: ")
			assert.Contains(t, v.page, bad.want)
		}
		assert.Equal(t, len(front.sent), 0, "requests")
	})

	t.Run("a crowd that cannot be meant keeps nobody from paying", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.press("pay keyed", url.Values{"shoppers": {"5000"}, "seed": {""}})
		assert.Equal(t, v.status, http.StatusOK)
		assert.Equal(t, len(front.sent), 1, "requests")
	})

	t.Run("a form that is too long is refused", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		v.press("pay keyed", url.Values{"more": {strings.Repeat("a", 20_000)}})
		assert.Equal(t, v.status, http.StatusRequestEntityTooLarge)
		assert.Contains(t, v.page, "the form is over 16384 bytes")
		assert.Equal(t, len(front.sent), 0, "requests")
	})

	t.Run("a form from another site is refused", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
			form := v.fields()
			form.Set("do", "pay keyed")
			req, err := http.NewRequest(http.MethodPost, base+"/shop/pay", strings.NewReader(form.Encode()))
			assert.NoError(t, err)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set(name, value)
			resp, err := v.client.Do(req)
			assert.NoError(t, err)
			page, err := io.ReadAll(resp.Body)
			assert.NoError(t, err)
			assert.NoError(t, resp.Body.Close())
			assert.Equal(t, resp.StatusCode, http.StatusForbidden, "status for %s", name)
			assert.Contains(t, string(page), "Nothing was sent: the order came from another site")
		}
		assert.Equal(t, len(front.sent), 0, "requests")
	})

	t.Run("a setting that cannot be made keeps the order from being sent", func(t *testing.T) {
		t.Parallel()
		front, base := newShop(t, shop.Config{})
		v := visit(t, base)
		front.broken = true
		v.press("pay all", url.Values{"lease": {"500ms"}})
		assert.Equal(t, v.status, http.StatusBadGateway)
		assert.Contains(t, v.page, "Nothing was sent: PUT /demo/service was answered with 500.")
		assert.Equal(t, len(front.sent), 0, "requests")
	})

	t.Run("a shop without a front is not made", func(t *testing.T) {
		t.Parallel()
		for _, bad := range []struct {
			cfg  shop.Config
			want string
		}{
			{shop.Config{}, `Config.Front is ""`},
			{shop.Config{Front: "localhost:80"}, `Config.Front is "localhost:80"`},
			{shop.Config{Front: "ftp://x"}, `Config.Front is "ftp://x"`},
			{shop.Config{Front: "http://\x00"}, "Config.Front: "},
			{shop.Config{Front: "http://x", AnswerWithin: -1}, "Config.AnswerWithin is -1ns, want zero or more"},
		} {
			_, err := shop.New(bad.cfg)
			assert.True(t, err != nil, "New took %+v", bad.cfg)
			if err != nil {
				assert.Contains(t, err.Error(), bad.want)
			}
		}
	})
}
