package crowd

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/internal/assert"
)

func TestNewsOfARunComesNowAndThenAndAtItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		news := 0
		c := New("http://127.0.0.1:1", func() { news++ })
		assert.True(t, c.begin(Settings{Shoppers: 100}), "the run was not taken on")
		for range 299 {
			c.update(func(r *Report) { r.Done++ })
			time.Sleep(10 * time.Millisecond)
		}
		assert.Equal(t, news, 3, "news in three seconds")
		c.update(func(r *Report) { r.Done++ })
		assert.Equal(t, news, 4, "when the last order has come to an end")
		c.update(func(r *Report) { r.Running = false })
		assert.Equal(t, news, 5, "when the money has been counted")
	})
}
