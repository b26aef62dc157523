package reststorage_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apistorage "k8s.io/apiserver/pkg/storage"

	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/chain/reststorage/reststoragetest"
)

// WaitDelivered waits for a watcher that reads slowly, and gives up one that does not.
func TestUndelivered(t *testing.T) {
	const events, pause = 15, time.Second
	for _, reads := range []bool{true, false} {
		t.Run(fmt.Sprintf("reads %t", reads), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := reststoragetest.Start(t)
				s := reststoragetest.New(t, store, reststorage.Config{})
				stored, destroy := reststoragetest.Add(t, s, store, pods)
				defer destroy()
				time.Sleep(time.Second) // the cache is ready
				watcher, err := stored.Watch(t.Context(), "/pods", apistorage.ListOptions{ResourceVersion: "0", Predicate: apistorage.Everything, Recursive: true})
				require.NoError(t, err)
				var reader sync.WaitGroup
				defer reader.Wait()
				defer watcher.Stop()
				for i := range events {
					create(t, stored, fmt.Sprint("pod-", i))
				}
				synctest.Wait()
				var taken atomic.Int32
				if reads {
					reader.Go(func() {
						for range watcher.ResultChan() {
							taken.Add(1)
							time.Sleep(pause)
						}
					})
				}
				resource := s.Resources()[0]
				begun := time.Now()
				require.NoError(t, resource.WaitDelivered(t.Context()))
				if reads {
					assert.EqualValues(t, events, taken.Load())
					assert.Equal(t, (events-1)*pause, time.Since(begun).Truncate(pause))
				} else {
					assert.Equal(t, 4*time.Second, time.Since(begun), "given up")
				}

				ended, cancel := context.WithCancel(t.Context())
				cancel()
				err = resource.WaitDelivered(ended)
				if reads {
					assert.NoError(t, err, "nothing to wait for")
				} else {
					assert.ErrorContains(t, err, fmt.Sprintf("watchers of pods have yet to take %d events: context canceled", events-1), "one is on its way between two queues")
				}
			})
		})
	}
}
