package reststorage_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apistorage "k8s.io/apiserver/pkg/storage"

	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/chain/reststorage/reststoragetest"
)

// A watch cache can be destroyed while more events are on their way than it queues for
// a watcher that does not read: upstream's alone would wait for ever for the goroutine
// that adds to the queue, which no watcher empties any more.
func TestDestroyBehind(t *testing.T) {
	for _, events := range []int{50, 100, 200, 400} {
		t.Run(fmt.Sprint(events), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := reststoragetest.Start(t)
				s := reststoragetest.New(t, store, reststorage.Config{})
				stored, destroy := reststoragetest.Add(t, s, store, pods)
				time.Sleep(time.Second) // the cache is ready
				watcher, err := stored.Watch(t.Context(), "/pods", apistorage.ListOptions{ResourceVersion: "0", Predicate: apistorage.Everything, Recursive: true})
				require.NoError(t, err)
				for i := range events {
					create(t, stored, fmt.Sprint("pod-", i))
				}
				synctest.Wait() // the watcher is full, and so is the queue
				destroyed := make(chan struct{})
				go func() {
					defer close(destroyed)
					destroy()
				}()
				select {
				case <-destroyed:
				case <-time.After(time.Minute):
					t.Fatal("the cache is not destroyed within a minute")
				}
				watcher.Stop()
				time.Sleep(time.Second) // upstream does not wait for who fills the watcher
			})
		})
	}
}
