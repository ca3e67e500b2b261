package integration

import (
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
)

// reader is somebody who reads the page without a browser: the form's fields,
// and what the diagrams say.
type reader struct {
	t      *testing.T
	base   string
	client *http.Client
	page   string
}

func (d demo) reader() *reader {
	d.t.Helper()
	jar, err := cookiejar.New(nil)
	assert.NoError(d.t, err)
	return &reader{t: d.t, base: d.base, client: &http.Client{Jar: jar}}
}

// open reads the page.
func (r *reader) open() {
	r.t.Helper()
	resp, err := r.client.Get(r.base)
	assert.NoError(r.t, err)
	r.read(resp)
}

func (r *reader) read(resp *http.Response) {
	r.t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	assert.NoError(r.t, err)
	assert.Equal(r.t, resp.StatusCode, http.StatusOK, "%s", body)
	r.page = string(body)
}

// press presses a button, with these choices beside what the page holds.
func (r *reader) press(do string, choices url.Values) {
	r.t.Helper()
	form := url.Values{"do": {do}}
	maps.Copy(form, choices)
	for _, field := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(r.page, -1) {
		form.Set(field[1], html.UnescapeString(field[2]))
	}
	resp, err := r.client.PostForm(r.base+"/shop/pay", form)
	assert.NoError(r.t, err)
	r.read(resp)
}

// ids are what differs from order to order and from run to run.
var ids = regexp.MustCompile(`(send|key|as|process|attempt) [0-9a-f]+\b`)

// sends are how many there were, which is more on a slow machine.
var sends = regexp.MustCompile(`: \d+ sends in all`)

// story returns what a till's diagram says, with no id in it, each sentence
// once and sorted, for what two processes log at the same moment has no order;
// and then why the order was charged as often as it was. Each sentence has its
// log line.
func (r *reader) story(till string) string {
	r.t.Helper()
	_, part, found := strings.Cut(r.page, `id="account-`+till+`"`)
	assert.True(r.t, found, "no till %s", till)
	why := regexp.MustCompile(`<p class="because"><b>(.*?)</b> (.*?)</p>`).FindStringSubmatch(part)
	_, part, _ = strings.Cut(part, `id="story-`+till+`"`)
	part, _, _ = strings.Cut(part, `</figure>`)
	var said []string
	for _, hop := range strings.Split(part, `<li class="hop `)[1:] {
		sentence := regexp.MustCompile(`<span class="unseen">([^<]*)</span>`).FindStringSubmatch(hop)
		line := regexp.MustCompile(`<code>&#43;\d+\.\d{3} s (\S[^<]*)</code>`).FindStringSubmatch(hop)
		if sentence == nil || line == nil {
			r.t.Fatalf("got no sentence or no log line in %s", hop)
		}
		said = append(said, ids.ReplaceAllString(html.UnescapeString(sentence[1]), "$1 N"))
	}
	slices.Sort(said)
	said = slices.Compact(said)
	if why != nil {
		said = append(said, why[1]+" "+sends.ReplaceAllString(why[2], ""))
	}
	return till + "\n  " + strings.Join(said, "\n  ") + "\n"
}

// TestTheDiagramsTellWhatTheProcessesLog plays each fault against the real
// processes: a log line that the page does not know any more, or that says
// something else, is a sentence that is missing here.
func TestTheDiagramsTellWhatTheProcessesLog(t *testing.T) {
	t.Parallel()
	program := buildDemo(t)
	files, err := filepath.Glob("testdata/stories/*.txt")
	assert.NoError(t, err)
	assert.Equal(t, len(files), 7, "faults, with none")
	for _, file := range files {
		fault := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			assert.NoError(t, err)
			d := startDemo(t, program)
			r := d.reader()
			// A killed service is back long before its claim lapses.
			d.put("/demo/service", `{"lease":"5s"}`)
			for _, till := range []string{"keyless", "naive", "keyed"} {
				r.open()
				r.settle(till, url.Values{"fault": {fault}})
			}
			got := ""
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the page told\n%s", got)
				}
			})
			assert.Eventually(t, "the page tells\n"+string(want), func() bool {
				r.open()
				got = r.story("keyless") + r.story("naive") + r.story("keyed")
				return got == string(want)
			})
		})
	}
}

// settle sends a till's order until it is paid, a few times a second: the log
// that the story is told from is not long.
func (r *reader) settle(till string, choices url.Values) {
	r.t.Helper()
	settled := regexp.MustCompile(`data-till="` + till + `"[^>]* data-state="(paid|paid-again)"`)
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	late := time.After(patience)
	for {
		r.press("pay "+till, choices)
		if settled.MatchString(r.page) {
			return
		}
		select {
		case <-again.C:
		case <-late:
			r.t.Fatalf("waited %v in vain until the order at %s is paid", patience, till)
		}
	}
}
