package watchfilter

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/watch"
)

// A watch that is stopped while an event is on its way leaves no goroutine: the bubble panics if it does.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := watch.NewFake()
		filtered := New(inner, func(event watch.Event) (watch.Event, bool) { return event, event.Type != watch.Added })
		inner.Add(nil)
		inner.Modify(nil)
		assert.Equal(t, watch.Modified, (<-filtered.ResultChan()).Type)
		inner.Delete(nil)
		synctest.Wait()
		filtered.Stop()
	})
}
