package broadcast

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var news News
		news.Tell() // without a listener
		var heard sync.WaitGroup
		for range 3 {
			next := news.Next()
			heard.Go(func() { <-next })
		}
		time.Sleep(time.Minute) // who waits does not keep time from passing
		select {
		case <-news.Next():
			t.Error("nothing has changed since")
		default:
		}
		news.Tell()
		heard.Wait()
		looks := 0
		time.AfterFunc(time.Minute, news.Tell)
		assert.NoError(t, news.Await(t.Context(), func() bool { looks++; return looks == 2 }), "after a change")
		assert.Equal(t, 2, looks, "after a change")
		late := errors.New("late")
		limited, cancel := context.WithTimeoutCause(t.Context(), time.Minute, late)
		defer cancel()
		assert.ErrorIs(t, news.Await(limited, func() bool { return false }), late, "nothing changes, and waiting")
	})
}
