package check

import (
	"net/http"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

func replyOf(body string) Exchange {
	return Exchange{Status: http.StatusCreated, Body: []byte(`{"amount":2500,"order":"o-77"}`), ReplyBody: []byte(body)}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	learnt := func(bodies ...string) marks {
		var all []Exchange
		for _, body := range bodies {
			all = append(all, replyOf(body))
		}
		return newMarks(all, []string{"/trace"})
	}
	t.Run("A mark is what differs in each execution and is neither an echo nor ignored", func(t *testing.T) {
		t.Parallel()
		m := learnt(
			`{"id":"aa1","amount":2500,"order":"o-77","state":"new","trace":"t1","n":[7]}`,
			`{"id":"bb2","amount":2500,"order":"o-78","state":"new","trace":"t2","n":[8]}`,
			`{"id":"cc3","amount":2500,"order":"o-79","state":"old","trace":"t3","n":[9]}`)
		assert.Equal(t, m.names, []string{"/id", "/n/0"})
	})
	t.Run("A time comes last, and alone shows no second execution", func(t *testing.T) {
		t.Parallel()
		m := learnt(`{"at":"2026-01-01T00:00:01Z"}`, `{"at":"2026-01-01T00:00:02Z"}`, `{"at":"2026-01-01T00:00:03Z"}`)
		assert.Equal(t, m.compare(replyOf(`{"at":"2026-01-01T00:00:04Z"}`), replyOf(`{"at":"2026-01-01T00:00:04Z"}`)), sameExecution)
		assert.Equal(t, m.compare(replyOf(`{"at":"2026-01-01T00:00:04Z"}`), replyOf(`{"at":"2026-01-01T00:00:05Z"}`)), unclear)
	})
	t.Run("One mark the same and one not tells nothing: an id may be made of the key", func(t *testing.T) {
		t.Parallel()
		m := learnt(`{"id":"a","charge":"1"}`, `{"id":"b","charge":"9"}`, `{"id":"c","charge":"3"}`)
		a := replyOf(`{"id":"x","charge":"4"}`)
		assert.Equal(t, m.compare(a, a), sameExecution)
		assert.Equal(t, m.compare(a, replyOf(`{"id":"x","charge":"5"}`)), unclear)
		assert.Equal(t, m.compare(a, replyOf(`{"id":"y","charge":"5"}`)), otherExecution)
	})
	t.Run("A body that is no JSON is a mark as a whole", func(t *testing.T) {
		t.Parallel()
		m := learnt("paid no. a", "paid no. b", "paid no. c")
		assert.Equal(t, m.names, []string{"body"})
	})
	t.Run("Replies that are all the same have no mark", func(t *testing.T) {
		t.Parallel()
		m := learnt(`{"ok":true}`, `{"ok":true}`, `{"ok":true}`)
		assert.Equal(t, len(m.names), 0)
		assert.Equal(t, m.in(replyOf(`{"ok":true}`)), false)
	})
}
