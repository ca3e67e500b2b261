package integration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// clickFunction clicks what a selector finds, if a person could: it is enabled,
// and nothing lies over it. All of that is one step for the page. A mouse that
// is sent to where a button was finds something else there when money has come
// meanwhile and what is below it has moved.
const clickFunction = `(selector) => {
	const found = document.querySelector(selector);
	if (!found) {
		return "it is not there";
	}
	if (found.disabled) {
		return "it is disabled";
	}
	found.scrollIntoView({ block: "center", behavior: "instant" });
	const { left, top, width, height } = found.getBoundingClientRect();
	const hit = document.elementFromPoint(left + width / 2, top + height / 2);
	if (!found.contains(hit) && !(hit && hit.closest("label")?.control === found)) {
		return "it cannot be seen, or is covered by " + hit?.outerHTML.slice(0, 100);
	}
	found.focus({ preventScroll: true });
	found.click();
	return "";
}`

// asAPerson makes what is evaluated count as a person's doing.
func asAPerson(p *runtime.EvaluateParams) {
	yes := true
	p.UserGesture = &yes
}

// clicking clicks what the selector finds, as soon as a person could.
func clicking(selector string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		click := chromedp.Evaluate[string](fmt.Sprintf("(%s)(%q)", clickFunction, selector), asAPerson)
		obstacle := "the page has not said why not"
		for {
			now, err := click(ctx, target)
			if err != nil {
				return chromedp.Void{}, fmt.Errorf("click %s: %s: %w", selector, obstacle, err)
			}
			if obstacle = now; obstacle == "" {
				return chromedp.Void{}, nil
			}
			time.Sleep(betweenLooks)
		}
	}
}

// betweenLooks is waited before something is looked for again.
const betweenLooks = 20 * time.Millisecond

// click clicks what the selector finds.
func (b tab) click(selector string) {
	b.t.Helper()
	b.do("click "+selector, clicking(selector))
}

// choose picks the fault that the next order meets.
func (b tab) choose(fault string) {
	b.t.Helper()
	b.click(`input[value="` + fault + `"]`)
}

// tick ticks a box.
func (b tab) tick(name string) {
	b.t.Helper()
	b.click(`input[name="` + name + `"]`)
}

// button selects the button of that value.
func button(value string) string { return `button[value="` + value + `"]` }

// press clicks the button of that value and, without scripts, waits for the
// page that comes back.
func (b tab) press(value string) {
	b.t.Helper()
	if b.scripts {
		b.pressOnly(value)
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	_, err := chromedp.RunResponse(ctx, clicking(button(value)))
	b.must(err, "press "+value)
}

// pressOnly clicks the button of that value and waits for nothing.
func (b tab) pressOnly(value string) {
	b.t.Helper()
	b.click(button(value))
}

// pressTwice is a double click on the button of that value, whatever the first
// one starts: where another page is there already, it was no double click.
func (b tab) pressTwice(value string) {
	b.t.Helper()
	evaluate[bool](b, "window.pressed = true")
	b.pressOnly(value)
	evaluate[bool](b, fmt.Sprintf("window.pressed === true && document.querySelector(%q).click() === undefined", button(value)))
}

// patient makes the tills of the page as it is wait for an answer however slow
// the machine is. The page loaded again has the usual patience.
func (b tab) patient() {
	b.t.Helper()
	evaluate[string](b, `document.querySelector("#shop").dataset.patience = "60000"`)
}

// shown is what a person would want to know of a page on which something did
// not come.
const shown = `[location.href, document.readyState, ...[...document.querySelectorAll(".till, .refusal, #stale, #run")]
	.filter((part) => part.checkVisibility()).map((part) => (part.dataset.state ?? "") + " " + part.innerText.replaceAll(/\s+/g, " "))].join("\n")`

// must ends the test for an error, and says what the page shows.
func (b tab) must(err error, what string) {
	b.t.Helper()
	if err == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), patience)
	defer cancel()
	page, pageErr := chromedp.Run(ctx, chromedp.Evaluate[string](shown))
	b.t.Fatalf("%s: %v\nthe page: %s\nits console: %s", what, errors.Join(err, pageErr), page, b.console)
}
