package shop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments/front"
	"github.com/semel-dev/semel/internal/assert"
)

// logged makes a request of lines, each of which is the members of its JSON but
// the time. The lines of all requests of one order are a millisecond apart.
type logged struct {
	now      time.Time
	requests []front.Entry
}

func (l *logged) send(key string, lines ...string) *logged {
	r := front.Entry{Key: key}
	for _, line := range lines {
		l.now = l.now.Add(time.Millisecond)
		r.Lines = append(r.Lines, fmt.Sprintf(`{"time":%q,%s}`, l.now.Format(time.RFC3339Nano), line))
	}
	l.requests = append(l.requests, r)
	return l
}

// Lines as the processes write them.
const (
	passed    = `"msg":"request passed on"`
	taken     = `"msg":"charge","answer":"taken"`
	knownAs   = `"msg":"charge","answer":"already taken"`
	killed    = `"msg":"process ended","which":"service"`
	answered  = `"msg":"reply passed on","status":201`
	lostReply = `"msg":"reply lost","status":201`
	gone      = `"msg":"the client has gone"`
	lookedFor = `"msg":"looked for the key","found":false`
	found     = `"msg":"looked for the key","found":true`
	savedKey  = `"msg":"saved the key"`
)

func event(name string) string { return fmt.Sprintf(`"msg":"semel: event","event":%q`, name) }

// thrice is what is said of a second send, for three.
func thrice(text string) string {
	return strings.Replace(text, "sent again.", "sent again: 3 sends in all.", 1)
}

func TestWhyAnOrderWasChargedAsOftenAsItWas(t *testing.T) {
	t.Parallel()
	const (
		lost     = "The work was done and its answer was lost. No answer came, so it was sent again. "
		after    = "The service was killed after the bank had taken the money. No answer came, so it was sent again. "
		before   = "The service was killed before it asked the bank. No answer came, so it was sent again. "
		never    = "The first send never arrived. No answer came, so it was sent again. "
		late     = "The client was gone before the answer came, and the work went on. No answer came, so it was sent again. "
		together = "It was sent twice, the second before the first had its answer. "
		nothing  = "Nothing tells a repeat from a second order, so the bank was asked as if there were 2."
	)
	for name, c := range map[string]struct {
		till till
		log  *logged
		want string
	}{
		"nothing has been sent": {keyless, &logged{}, ""},
		"sent once, no key":     {keyless, new(logged).send("", passed, taken, answered), "It was sent once. Nothing here would notice a second send."},
		"sent once, looked up":  {naive, new(logged).send("k", passed, lookedFor, taken, savedKey, answered), "It was sent once. The key is saved last, so until then a second send would not be noticed."},
		"sent once, claimed":    {keyed, new(logged).send("k", passed, event("claimed"), taken, event("done"), answered), "It was sent once. The key was claimed before the bank was asked."},
		"sent once and lost":    {keyed, new(logged).send("k", `"msg":"request lost"`), "The first send never arrived. No answer came, and it has not been sent again so far."},
		"on its way":            {keyed, new(logged).send("k", passed), "It was sent once, and the bank has taken nothing for it so far."},

		"reply lost, no key": {keyless, new(logged).send("", passed, taken, lostReply).send("", passed, taken, answered), lost + nothing},
		"killed, no key":     {keyless, new(logged).send("", passed, taken, killed).send("", passed, taken, answered), after + nothing},
		"killed too soon, no key": {
			keyless, new(logged).send("", passed, killed).send("", passed, taken, answered),
			before + "Only one send made the bank take money. That was luck: nothing tells a repeat from a second order.",
		},
		"killed, looked up": {
			naive, new(logged).send("k", passed, lookedFor, taken, killed).send("k", passed, lookedFor, taken, savedKey, answered),
			after + "The key is saved last. Each send looked before one was saved, found nothing, and charged.",
		},
		"reply lost, looked up": {
			naive, new(logged).send("k", passed, lookedFor, taken, savedKey, lostReply).send("k", passed, found, answered),
			lost + "By then the key had been saved: the repeat found it, and got the same answer.",
		},
		"request lost, looked up": {
			naive, new(logged).send("k", `"msg":"request lost"`).send("k", passed, lookedFor, taken, savedKey, answered),
			never + "The first send had charged nothing, so charging now was right. That was luck: the door cannot tell.",
		},
		"killed after the charge, claimed": {
			keyed, new(logged).send("k", passed, event("claimed"), taken, killed).send("k", passed, event("in_progress")).
				send("k", passed, event("takeover"), knownAs, event("done"), answered),
			thrice(after) + "While an attempt held the key, the repeat was told to wait (409). Then a later send took the key over and asked the bank under the same id. The bank knew it, and took nothing more.",
		},
		"killed before the charge, claimed": {
			keyed, new(logged).send("k", passed, event("claimed"), killed).send("k", passed, event("takeover"), taken, event("done"), answered),
			before + "Then a later send took the key over from the dead attempt and charged, once.",
		},
		"reply lost, claimed": {
			keyed, new(logged).send("k", passed, event("claimed"), taken, event("done"), lostReply).send("k", passed, event("replayed"), answered),
			lost + "The repeat carried the same key and got the saved answer. The bank was not asked again.",
		},
		"request lost, claimed": {
			keyed, new(logged).send("k", `"msg":"request lost"`).send("k", passed, event("claimed"), taken, event("done"), answered),
			never + "The repeat was the first to claim the key.",
		},
		"slow, claimed": {
			keyed, new(logged).send("k", passed, event("claimed"), gone, taken, event("done")).send("k", passed, event("in_progress")).send("k", passed, event("replayed"), answered),
			thrice(late) + "While an attempt held the key, the repeat was told to wait (409). The repeat carried the same key and got the saved answer. The bank was not asked again.",
		},
		"the bank failed and nobody knows more, claimed": {
			keyed, new(logged).send("k", passed, event("claimed"), event("unknown"), `"msg":"reply passed on","status":502`).
				send("k", passed, event("takeover"), taken, event("done"), answered),
			"The bank failed, and the answer said so. Nobody knew how the first attempt ended, so a later send took its key over and asked the bank under the same id, which had taken nothing.",
		},
		"the bank failed, claimed": {
			keyed, new(logged).send("k", passed, event("claimed"), event("released"), `"msg":"reply passed on","status":502`).
				send("k", passed, event("claimed"), taken, event("done"), answered),
			"The bank failed, and the answer said so. The failed attempt gave its key back, and the repeat ran under the same one.",
		},
		"another amount, claimed": {
			keyed, new(logged).send("k", passed, event("claimed"), taken, event("done"), lostReply).send("k", passed, event("key_reused"), `"msg":"reply passed on","status":422`),
			lost + "The repeat asked for another amount under the same key: refused (422), and nothing ran.",
		},
		"another key each time, looked up": {
			naive, new(logged).send("k", passed, lookedFor, taken, savedKey, lostReply).send("l", passed, lookedFor, taken, savedKey, answered),
			lost + "Each send carried another key, so none was found.",
		},
		"another key each time, claimed": {
			keyed, new(logged).send("k", passed, event("claimed"), taken, event("done"), lostReply).send("l", passed, event("claimed"), taken, event("done"), answered),
			lost + "Each send carried another key. To Semel these are different orders, and nothing behind can know better.",
		},
		"a bank that forgets, claimed": {
			keyed, new(logged).send("k", passed, event("claimed"), taken, killed).send("k", passed, event("takeover"), taken, event("done"), answered),
			after + "Both attempts asked the bank under the same id, and this bank ignores it. Semel can only make the id the same.",
		},
		"sent although paid": {keyless, new(logged).send("", passed, taken, answered).send("", passed, taken, answered), nothing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, why(c.till, c.log.requests), c.want)
		})
	}

	t.Run("a double click", func(t *testing.T) {
		t.Parallel()
		both := new(logged).send("", passed).send("", passed)
		both.send("", taken, answered).send("", taken, answered)
		for i := range 2 {
			both.requests[i].Lines = append(both.requests[i].Lines, both.requests[i+2].Lines...)
		}
		assert.Equal(t, why(keyless, both.requests[:2]), together+nothing)

		again := new(logged).send("", passed, answered).requests[0]
		often := slices.Concat(both.requests[:2], []front.Entry{again, again, again})
		assert.Contains(t, why(keyless, often), "It was sent 5 times, the second before the first had its answer. ")
	})
}
