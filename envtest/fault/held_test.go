package fault

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Held are those that no time lets go.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := New(Config{})
		for _, text := range []string{
			"delay store/put name=delayed by=1s", "hold store/put name=ends for=1s",
			"hold store/put name=held", "freeze cache/pods at=3",
		} {
			rule, err := Parse(text, nil)
			require.NoError(t, err)
			_, err = set.Add(rule)
			require.NoError(t, err)
		}
		type key struct{}
		for _, op := range []Operation{
			{Point: "cache/pods", Verb: "event", Revision: 4}, {Point: "store/put", Name: "held"}, {Point: "cache/pods", Verb: "event", Revision: 3},
			{Point: "store/put", Name: "delayed"}, {Point: "store/put", Name: "ends"},
		} {
			go func() { _, _ = set.At(context.WithValue(t.Context(), key{}, op.Name), func() Operation { return op }) }()
		}
		synctest.Wait()
		held := set.Held()
		require.Len(t, held, 2)
		assert.Equal(t, "store/put held", held[0].String())
		assert.Equal(t, "hold store/put name=held", held[0].Rule.String())
		assert.Equal(t, "held", held[0].Value(key{}))
		assert.Equal(t, int64(4), held[1].Revision)
		set.Close()
		synctest.Wait()
		assert.Empty(t, set.Held())
	})
}

// What waits for a turn is held too, as long as it does.
func TestHeldByTheScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := New(Config{})
		order := &turns{}
		set.Schedule(order)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = set.At(t.Context(), func() Operation { return put })
		}()
		synctest.Wait()
		held := set.Held()
		require.Len(t, held, 1)
		assert.Equal(t, put.Name, held[0].Name)
		assert.Equal(t, Rule{}, held[0].Rule)
		set.Schedule(nil)
		<-done
		assert.Empty(t, set.Held())
	})
}
