package shop

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/internal/assert"
)

func TestWhatSeveralAskForAtTheSameTimeIsMadeOnceForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s shared
		made := 0
		build := func() ([]byte, error) {
			made++
			time.Sleep(time.Second)
			return fmt.Append(nil, made), nil
		}
		got := make([]string, 11)
		var all sync.WaitGroup
		ask := func(i int) {
			body, err := s.get("view", build)
			assert.NoError(t, err)
			got[i] = string(body)
		}
		all.Go(func() { ask(0) })
		time.Sleep(100 * time.Millisecond)
		for i := 1; i < len(got); i++ {
			all.Go(func() { ask(i) })
		}
		all.Wait()
		assert.Equal(t, made, 2, "made for eleven who asked")
		assert.Equal(t, got[0], "1")
		for _, body := range got[1:] {
			assert.Equal(t, body, "2", "for who asked while the first was made: that one may be old")
		}
		ask(0)
		assert.Equal(t, got[0], "3", "for who asks later")
		synctest.Wait()
		assert.Equal(t, len(s.queues), 0, "queues that are left")
	})
}

func TestWhatCannotBeMadeIsToldToAllWhoAsked(t *testing.T) {
	t.Parallel()
	var s shared
	broken := errors.New("broken")
	_, err := s.get("view", func() ([]byte, error) { return nil, broken })
	assert.ErrorIs(t, err, broken)
	body, err := s.get("view", func() ([]byte, error) { return []byte("well"), nil })
	assert.NoError(t, err)
	assert.Equal(t, string(body), "well")
}
