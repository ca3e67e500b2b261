package integration

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/semel-dev/semel/internal/assert"
)

// look is a way to look at the page.
type look struct {
	name          string
	width, height int64
	scheme        string
}

// looks are light and dark, on a wide screen and on a phone.
var looks = []look{
	{"wide-light", 1440, 900, "light"},
	{"wide-dark", 1440, 900, "dark"},
	{"phone-light", 375, 812, "light"},
	{"phone-dark", 375, 812, "dark"},
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
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(90))
	assert.NoError(b.t, err)
	assert.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600))
}

// TestShopPageLooks sees every state of the page in every look, and that axe
// finds nothing serious in any.
func TestShopPageLooks(t *testing.T) {
	t.Parallel()
	browser := startChromium(t)
	program := buildDemo(t)
	for _, scripts := range []bool{true} {
		d := startDemo(t, program)
		b := openTab(t, browser, scripts)
		b.open(d.base)
		see := func(state string) {
			for _, l := range looks {
				b.lookAt(l)
				b.shoot(state + "-" + l.name)
			}
			b.lookAt(looks[0])
		}
		see("1-open")
		b.choose("killed-after-charge")
		b.press("pay all")
		for _, till := range []string{"keyless", "naive", "keyed"} {
			b.waitForState(till, "paid", "paid-again")
		}
		b.waitFor(`#account-naive [data-verdict="over"]`)
		see("2-killed")
		b.choose("reply-lost")
		b.do("guess", chromedp.Click(chromedp.CSS(`input[name=guess]`)))
		b.press("pay all")
		b.waitFor(`#account-keyed button[value="yes keyed"]`)
		b.waitFor(`#account-naive button[value="yes naive"]`)
		see("3-guess")
		b.press("no keyed")
		b.waitFor(`#keyed .guessed`)
		b.waitForState("keyed", "paid")
		see("4-guessed")
	}
}
