package intercept

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestRelay has what is asked about wait a second each, counted from its arrival.
func TestRelay(t *testing.T) {
	for name, test := range map[string]struct {
		ask  func(what int) ([]int, bool)
		want []int
	}{
		"passes":     {func(what int) ([]int, bool) { return []int{what}, true }, []int{1, 2, 3, 4, 5, 6}},
		"drops":      {func(int) ([]int, bool) { return nil, true }, []int{1, 3, 5}},
		"duplicates": {func(what int) ([]int, bool) { return []int{what, what}, true }, []int{1, 2, 2, 3, 4, 4, 5, 6, 6}},
		"ends":       {func(what int) ([]int, bool) { return nil, what < 4 }, []int{1, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, out := make(chan int), make(chan int)
				relay := Relay[int]{
					In: in, Out: out, Concerns: func(what int) bool { return what%2 == 0 },
					Ask: func(_ context.Context, what int, arrived time.Time) ([]int, bool) {
						time.Sleep(time.Until(arrived.Add(time.Second)))
						return test.ask(what)
					},
				}
				go relay.Run(t.Context())
				go func() {
					defer close(in)
					for _, what := range []int{1, 2, 3, 4, 5, 6} {
						select {
						case in <- what:
						case <-time.After(time.Minute): // it has ended
							return
						}
					}
				}()
				begin := time.Now()
				var got []int
				for what := range out {
					got = append(got, what)
				}
				assert.Equal(t, test.want, got)
				assert.Equal(t, time.Second, time.Since(begin), "a lag, not a brake")
			})
		})
	}
}

// TestRelaySplits asks about the parts of what it takes apart.
func TestRelaySplits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := make(chan []int, 1), make(chan []int)
		relay := Relay[[]int]{
			In: in, Out: out,
			Split:    func(all []int) [][]int { return slices.Collect(slices.Chunk(all, 1)) },
			Concerns: func(part []int) bool { return part[0] == 2 },
			Ask:      func(context.Context, []int, time.Time) ([][]int, bool) { return nil, true },
		}
		in <- []int{1, 2, 3}
		close(in)
		go relay.Run(t.Context())
		assert.Equal(t, []int{1}, <-out)
		assert.Equal(t, []int{3}, <-out)
		_, more := <-out
		assert.False(t, more)
	})
}

// TestRelayIsCancelled at each place where it can be, and leaves nobody behind.
func TestRelayIsCancelled(t *testing.T) {
	for name, fill := range map[string][]int{"idle": nil, "asking": {2}, "sending": {1}, "asking, more behind": {2, 1, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				in, out := make(chan int, len(fill)), make(chan int)
				for _, what := range fill {
					in <- what
				}
				relay := Relay[int]{
					In: in, Out: out, Concerns: func(what int) bool { return what == 2 },
					Ask: func(ctx context.Context, what int, _ time.Time) ([]int, bool) {
						<-ctx.Done()
						return nil, false
					},
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					relay.Run(ctx)
				}()
				synctest.Wait()
				cancel()
				<-done
				_, more := <-out
				assert.False(t, more)
			})
		})
	}
}
