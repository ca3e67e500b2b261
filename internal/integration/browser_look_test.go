package integration

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/semel-dev/semel/internal/assert"
)

// look is a way to look at the page.
type look struct {
	name          string
	width, height int64
	scheme        string
	// axe looks too: at the widest and the narrowest, and at both sets of colours.
	axe bool
}

// looks are light and dark, on a wide screen and on a phone.
var looks = []look{
	{"wide-light", 1440, 900, "light", true},
	{"wide-dark", 1440, 900, "dark", true},
	{"narrow-light", 1024, 768, "light", false},
	{"phone-light", 390, 844, "light", true},
	{"phone-dark", 390, 844, "dark", false},
}

// lookAt makes the tab look that way.
func (b tab) lookAt(l look) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: l.width, Height: l.height, DeviceScaleFactor: 1,
	})
	assert.NoError(b.t, err)
	_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}},
	})
	assert.NoError(b.t, err)
}

// shoot saves a picture of the whole page in the directory SEMEL_SHOTS, if that
// is set: they are for people to look at.
func (b tab) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("SEMEL_SHOTS")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	assert.NoError(b.t, err)
	assert.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600))
}

// axeRun runs axe over the page and returns what is serious, each with where.
const axeRun = `axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => violations
	.filter(({impact}) => impact === "serious" || impact === "critical")
	.map(({id, help, nodes}) => id + ": " + help + " at " + nodes.map(({target}) => target.join(" ")).join(", ")))`

// axe checks the page as it is now. The library comes through DevTools and not
// from the page, whose policy stays in force. It needs scripts to run, which
// the page has been loaded without if it is to do without them.
func (b tab) axe(state string) {
	b.t.Helper()
	if !b.scripts {
		b.run(true)
		defer b.run(false)
	}
	library, err := os.ReadFile("testdata/axe/axe.min.js")
	assert.NoError(b.t, err)
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	b.must(chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](string(library)+";undefined")), "load axe")
	assert.Equal(b.t, evaluate[[]string](b, axeRun), []string{}, "what axe finds in %s", state)
}

// TestAxeIsTheOneThatWasRecorded holds the library against its checksum.
func TestAxeIsTheOneThatWasRecorded(t *testing.T) {
	t.Parallel()
	recorded, err := os.ReadFile("testdata/axe/SHA256SUMS")
	assert.NoError(t, err)
	library, err := os.ReadFile("testdata/axe/axe.min.js")
	assert.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("%x  axe.min.js\n", sha256.Sum256(library)), string(recorded))
}

// see looks at the page in every look: axe finds nothing serious, where it
// looks, and nothing is wider than the screen.
func (b tab) see(state string) {
	b.t.Helper()
	for _, l := range looks {
		b.lookAt(l)
		b.shoot(state + "-" + l.name)
		if l.axe {
			b.axe(state + " " + l.name)
		}
		assert.True(b.t, b.fits(), "%s %s is wider than the screen", state, l.name)
	}
	b.lookAt(looks[0])
}

// fits reports whether the page is as wide as the screen.
func (b tab) fits() bool {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	size, err := chromedp.Call(ctx, page.GetLayoutMetrics, cdp.Empty{})
	assert.NoError(b.t, err)
	return size.CSSContentSize.Width <= float64(size.CSSLayoutViewport.ClientWidth)
}

// TestShopPageLooks sees every state of the page in every look.
func TestShopPageLooks(t *testing.T) {
	t.Parallel()
	d := startDemo(t, buildDemo(t))
	b := openTab(t, startChromium(t), true)
	see := b.see
	b.open(d.base)
	see("1-open")
	b.choose("slow")
	b.press("pay keyed")
	b.waitForState("keyed", "sending")
	b.shoot("1b-sending")
	b.waitForState("keyed", "paid")

	b.choose("killed-after-charge")
	b.press("pay all")
	for _, till := range []string{"keyless", "naive", "keyed"} {
		b.waitForState(till, "paid", "paid-again")
	}
	b.waitFor(`#account-naive [data-verdict="over"]`)
	b.waitFor(`#account-keyed [data-verdict="right"]`)
	see("2-killed")

	b.press("twice all")
	b.waitFor("#keyed .tries li:nth-child(2)")
	b.waitForState("keyed", "paid")
	see("2b-twice")

	b.choose("reply-lost")
	b.tick("guess")
	b.press("pay all")
	for _, till := range []string{"keyless", "naive", "keyed"} {
		b.waitFor(`#account-` + till + ` button[value="yes ` + till + `"]`)
	}
	see("3-guess")

	b.press("no keyed")
	b.waitFor(`#keyed .guessed`)
	b.waitForState("keyed", "paid")
	see("4-guessed")

	b.press("new all") // the other two still wait for a guess
	b.open(d.base + "/?step=on&fault=request-lost")
	b.press("pay keyed")
	b.waitForState("keyed", "paid")
	b.waitFor(`button[value="step keyed"]`)
	b.press("step keyed")
	b.waitFor("#story-keyed .hop.unknown")
	see("5-step")

	b.open(d.base + "/?seed=3&shoppers=60&trouble=15")
	b.press("run")
	b.waitFor("#run progress")
	b.shoot("6-running")
	b.waitFor(`#run [data-row="keyed"]`)
	b.click("#log-title + details summary")
	see("7-crowd")

	for _, width := range []int64{375, 1024, 1280} {
		b.lookAt(look{width: width, height: 900, scheme: "light"})
		assert.True(t, evaluate[bool](b, `[...document.querySelectorAll(".sum strong")].every((sum) => {
			sum.textContent = "$123,456.78";
			const { height } = sum.getBoundingClientRect();
			return sum.scrollWidth <= sum.clientWidth && height < 2 * parseFloat(getComputedStyle(sum).fontSize);
		})`), "a sum of eight digits does not fit at %d", width)
	}

	b.open(d.base + "/nowhere")
	see("8-refused")

	evaluate[bool](b, `document.querySelector("main").append(document.createElement("input")) ?? true`)
	assert.Equal(t, len(evaluate[[]string](b, axeRun)), 1, "what axe finds of a field without a name")
}

// TestShopPageLooksWithoutJavaScript sees the page that the server makes by
// itself.
func TestShopPageLooksWithoutJavaScript(t *testing.T) {
	t.Parallel()
	d := startDemo(t, buildDemo(t))
	b := openTab(t, startChromium(t), false)
	b.open(d.base)
	b.see("n1-open")
	b.press("pay all")
	for _, till := range []string{"keyless", "naive", "keyed"} {
		b.waitForState(till, "unknown")
	}
	b.see("n2-unknown")
	b.press("pay keyless")
	b.press("pay naive")
	b.settle("keyed")
	b.see("n3-settled")
	b.open(d.base + "/?shoppers=0")
	b.see("n4-refused")
}
