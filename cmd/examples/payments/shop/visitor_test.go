package shop_test

import (
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// visitor is a browser without JavaScript: it has cookies, reads the form of
// the page it is on, and presses its buttons.
type visitor struct {
	t      testing.TB
	base   string
	client *http.Client
	// status, header and page are those of the last answer.
	status int
	header http.Header
	page   string
	// posted is the last form, for reload.
	posted url.Values
}

// visit opens the page of the shop at base.
func visit(t testing.TB, base string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, base: base, client: &http.Client{Jar: jar}}
	v.open("/")
	return v
}

func (v *visitor) open(path string) {
	v.t.Helper()
	req, err := http.NewRequest(http.MethodGet, v.base+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	v.do(req)
}

func (v *visitor) do(req *http.Request) {
	v.t.Helper()
	resp, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	v.status, v.header, v.page = resp.StatusCode, resp.Header, string(body)
}

// fields returns the form as a browser would post it when the page is fresh.
func (v *visitor) fields() url.Values {
	out := url.Values{"fault": {"none"}, "times": {"1"}}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(v.page, -1) {
		out.Set(m[1], html.UnescapeString(m[2]))
	}
	return out
}

// press presses the button of that value, with changes made to the form.
func (v *visitor) press(button string, changes url.Values) {
	v.t.Helper()
	form := v.fields()
	maps.Copy(form, changes)
	form.Set("do", button)
	v.post(form)
}

// post sends a form.
func (v *visitor) post(form url.Values) {
	v.t.Helper()
	v.posted = form
	req, err := http.NewRequest(http.MethodPost, v.base+"/shop/pay", strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	v.do(req)
}

// reload posts the last form again, as a browser does.
func (v *visitor) reload() {
	v.t.Helper()
	v.post(v.posted)
}

// says returns what the till shows: its state, its sentence, and what came of
// each try of the last press.
func (v *visitor) says(till string) (state, sentence string, tries []string) {
	v.t.Helper()
	_, section, found := strings.Cut(v.page, `<section class="till" id="`+till+`"`)
	if !found {
		v.t.Fatalf("got no till %s in %s", till, v.page)
	}
	section, _, _ = strings.Cut(section, "</section>")
	first := func(pattern string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(section)
		if m == nil {
			v.t.Fatalf("got no %s in %s", pattern, section)
		}
		return html.UnescapeString(m[1])
	}
	for _, m := range regexp.MustCompile(`<li>(.*?)</li>`).FindAllStringSubmatch(section, -1) {
		tries = append(tries, html.UnescapeString(m[1]))
	}
	return first(`data-state="([^"]*)"`), first(`<p data-say="[^"]*">([^<]*)</p>`), tries
}
