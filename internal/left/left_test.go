package left

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// TestLeftIsShort has more kinds of goroutines than a page has lines: those that are not
// named are counted.
func TestLeftIsShort(t *testing.T) {
	var entries []string
	for i := range 3 * leftKinds {
		entries = append(entries, fmt.Sprintf("%d @ 0x1\n#\t0x1\ta/b.f%d+0x1\t/a/b.go:%d\n%s", i+1, i, i, strings.Repeat("#\t0x2\ta/b.main+0x1\t/a/b.go:1\n", 20)))
	}
	count, report := Describe(entries)
	assert.Equal(t, 3*leftKinds*(3*leftKinds+1)/2, count)
	named, _, _ := strings.Cut(report, "\n\n")
	assert.Equal(t, leftKinds, strings.Count(named, "\n")) // and the last, without its end
	assert.Contains(t, named, fmt.Sprintf(" of %d more kinds", 2*leftKinds))
	assert.LessOrEqual(t, len(report), 2*leftStacks)
}

// hang is what a goroutine of TestAwait hangs in.
func hang(stop <-chan struct{}) { <-stop }

// TestAwait names the goroutines of the functions that it is asked for, and no others. Only
// a goroutine that waits already has a state to tell, so the test waits for that.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		defer close(stop)
		go hang(stop)
		synctest.Wait()
		why := errors.New("not within an hour")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		err := Await(ctx, nil, "stop it", "snowglobe.test/internal/left.hang")
		for _, want := range []string{
			"stop it: not within an hour; what is left (1 goroutines):\n     1 in left.hang (left_test.go:",
			"[chan receive], of left.hang, created by left.TestAwait",
			"\tsnowglobe.test/internal/left.hang+0x",
		} {
			assert.Contains(t, err.Error(), want)
		}
		assert.ErrorIs(t, err, why, "the cause is not wrapped")
		none := Await(ctx, nil, "stop it", "snowglobe.test/internal/nothing")
		assert.Equal(t, "stop it: not within an hour", none.Error())
		assert.NoError(t, Await(t.Context(), ctx.Done(), "stop it"))
	})
}
