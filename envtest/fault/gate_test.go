package fault

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crowd is operations that ask on goroutines of their own.
type crowd struct {
	set  *Set
	done chan string // names of those that have gone on
}

func newCrowd(s *Set) *crowd { return &crowd{s, make(chan string, 100)} }

// comes starts operations, one after the other: the next one comes when the one
// before waits.
func (c *crowd) comes(t *testing.T, names ...string) {
	for _, name := range names {
		go func() {
			d, err := c.set.At(t.Context(), func() Operation { return named(name) })
			assert.False(t, err != nil || d.Kind != Pass, "%s: %v, %v", name, d, err)
			c.done <- name
		}()
		synctest.Wait()
	}
}

// gone are those that have gone on since the last call.
func (c *crowd) gone() []string {
	synctest.Wait()
	names := []string{}
	for len(c.done) > 0 {
		names = append(names, <-c.done)
	}
	return names
}

func waiting(g *Gate) []string {
	names := []string{}
	for _, op := range g.Waiting() {
		names = append(names, op.Name)
	}
	return names
}

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setOf(t, Config{})
		g, err := s.Gate("store/put resource=configmaps")
		require.NoError(t, err)
		c := newCrowd(s)
		c.comes(t, "a", "b", "c", "a", "d")
		assert.Empty(t, c.gone())
		assert.Equal(t, []string{"a", "b", "c", "a", "d"}, waiting(g))
		assert.Equal(t, 2, g.Waiting()[3].Occurrence)

		assert.Len(t, g.Release(2), 2)
		assert.ElementsMatch(t, []string{"a", "b"}, c.gone())
		second := g.Waiting()[1]
		assert.True(t, g.ReleaseOnly(second))
		assert.False(t, g.ReleaseOnly(second), "released twice")
		assert.Equal(t, []string{"a"}, c.gone())
		assert.Equal(t, []string{"c", "d"}, waiting(g))

		g.Open()
		assert.ElementsMatch(t, []string{"c", "d"}, c.gone())
		c.comes(t, "e")
		assert.Equal(t, []string{"e"}, c.gone(), "an open gate holds")
		g.Close()
		c.comes(t, "f")
		assert.Empty(t, c.gone(), "a closed gate lets pass")
		assert.Len(t, g.Release(10), 1)
		assert.Equal(t, []string{"f"}, c.gone())
		assert.Equal(t, 6, s.Rules()[0].Fired())

		c.comes(t, "g", "g")
		last := g.Waiting()[1]
		assert.True(t, g.ReleaseOnly(last))
		assert.Equal(t, []string{"g"}, c.gone())
		assert.Equal(t, 1, g.Waiting()[0].Occurrence, "another operation of the same identity is released")
		g.Remove()
		assert.Equal(t, []string{"g"}, c.gone(), "a gate that is removed holds")
		assert.False(t, s.Active())
	})
}

func TestGateOfARule(t *testing.T) {
	s := setOf(t, Config{}, "hold store/put name=default/a", "drop store/put", "freeze cache/pods")
	g, err := s.Gate("store/put namespace=default name=a")
	require.NoError(t, err)
	assert.Same(t, s.Rules()[0], g.entry, "the gate of the same rule")
	optional, err := s.Gate("store/put name=default/a optional")
	require.NoError(t, err)
	assert.Equal(t, g, optional, "to be optional makes no other gate")
	assert.Nil(t, s.Rules()[1].Gate(), "a rule at which nothing waits has a gate")
	assert.NotNil(t, s.Rules()[2].Gate())
	_, err = s.Gate("store/put nmae=a")
	assert.EqualError(t, err, `gate "store/put nmae=a": column 11: unknown key "nmae"; did you mean name?`)
}

// Close lets everything go, and nothing is held any more; without Close the
// bubble would not end.
func TestCloseReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setOf(t, Config{}, "hold store/put name=a", "hold store/put", "crash store/put")
		c := newCrowd(s)
		c.comes(t, "a", "b")
		assert.Empty(t, c.gone())
		s.Close()
		assert.ElementsMatch(t, []string{"a", "b"}, c.gone())
		c.comes(t, "c")
		assert.Equal(t, []string{"c"}, c.gone())
		s.Schedule(&turns{})
		c.comes(t, "d")
		assert.Equal(t, []string{"d"}, c.gone(), "a scheduler comes after Close")
	})
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setOf(t, Config{})
		g, err := s.Gate("store/put")
		require.NoError(t, err)
		time.AfterFunc(time.Minute, func() { newCrowd(s).comes(t, "a") })
		time.AfterFunc(time.Hour, func() { newCrowd(s).comes(t, "b") })
		start := time.Now()
		ops, err := g.Await(t.Context(), 2)
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b"}, []string{ops[0].Name, ops[1].Name})
		assert.Equal(t, time.Hour, time.Since(start))

		cause := errors.New("no third")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		_, err = g.Await(ctx, 3)
		assert.ErrorIs(t, err, cause)
		assert.ErrorContains(t, err, "there are 2: [store/put configmaps default/a store/put configmaps default/b]")
		s.Close()
	})
}

// A hold ends with its context, and with the time of its rule.
func TestHoldEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setOf(t, Config{}, "hold store/put after=5s for=30s")
		g := s.Rules()[0].Gate()
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := s.At(ctx, func() Operation { return put })
		assert.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, time.Second, time.Since(start))
		assert.Empty(t, g.Waiting(), "who has given up still waits")

		assert.Equal(t, Pass, at(t, s, put).Kind)
		assert.Equal(t, 25*time.Second, time.Since(start), "held until 35s after the rule was added")
		assert.Empty(t, g.Waiting())
		assert.Equal(t, Pass, at(t, s, put).Kind)
		assert.Equal(t, 25*time.Second, time.Since(start), "held after the rule has ended")
	})
}

// Who waits at two gates must pass both, and then meets the outcome.
func TestTwoGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setOf(t, Config{}, "hold store/put", "hold store/* resource=configmaps", "crash store/put")
		first, second := s.Rules()[0].Gate(), s.Rules()[1].Gate()
		decided := make(chan Decision, 1)
		go func() { decided <- at(t, s, named("a")) }()
		synctest.Wait()
		assert.Empty(t, second.Waiting())
		assert.Len(t, first.Release(1), 1)
		synctest.Wait()
		assert.Len(t, second.Waiting(), 1)
		assert.Empty(t, decided)
		second.Open()
		assert.Equal(t, Crash, (<-decided).Kind)
	})
}

func TestFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setOf(t, Config{}, "freeze cache/pods at=120")
		taken := make(chan int64, 10)
		go func() {
			for revision := int64(118); revision <= 123; revision++ {
				at(t, s, Operation{Point: "cache/pods", Verb: "event", Revision: revision})
				taken <- revision
			}
		}()
		synctest.Wait()
		assert.Len(t, taken, 3)
		s.Rules()[0].Gate().Open()
		synctest.Wait()
		assert.Len(t, taken, 6)

		all := setOf(t, Config{}, "freeze cache/pods")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := all.At(ctx, func() Operation { return Operation{Point: "cache/pods", Verb: "event", Revision: 1} })
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
