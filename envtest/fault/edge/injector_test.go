package edge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/fault"
)

// injectorOf makes an injector of the server "a" with rules, and counts its effects.
func injectorOf(t *testing.T, rules ...string) (e *Injector, effects map[string]int) {
	effects = map[string]int{}
	set := setOf(t, rules...)
	count := func(name string) func(context.Context) error {
		return func(context.Context) error {
			effects[name]++
			return nil
		}
	}
	return NewInjector(set, "a", Effects{
		Compact: count("compact"), LoseLeader: count("lose-leader"), Crash: func(error) { effects["crash"]++ },
	}), effects
}

func setOf(t *testing.T, rules ...string) *fault.Set {
	t.Helper()
	set := fault.New(fault.Config{})
	t.Cleanup(set.Close)
	for _, rule := range rules {
		_, err := set.Inject(rule)
		require.NoError(t, err)
	}
	return set
}

// called is how often a call happened, and what its caller was told.
type called struct {
	times int
	err   error
}

func write(ctx context.Context, e *Injector) called {
	var c called
	_, c.err = Call(ctx, e, func() fault.Operation {
		return fault.Operation{Point: "store/put", Resource: "configmaps"}
	},
		func(context.Context) (int, error) {
			c.times++
			return c.times, nil
		})
	return c
}

func TestCall(t *testing.T) {
	for rule, want := range map[string]struct {
		times  int
		err    error
		effect string
	}{
		"fail store/put with=timeout":                        {0, context.DeadlineExceeded, ""},
		"lose-reply store/put with=timeout":                  {1, context.DeadlineExceeded, ""},
		"duplicate store/put":                                {2, nil, ""},
		"cancel store/put":                                   {0, context.Canceled, ""},
		"compact store/put":                                  {1, nil, "compact"},
		"lose-leader store/put":                              {1, nil, "lose-leader"},
		"crash store/put":                                    {0, fault.ErrCrashed, "crash"},
		"fail store/put server=b with=timeout optional":      {1, nil, ""},
		"fail store/put server=a with=timeout":               {0, context.DeadlineExceeded, ""},
		"fail store/put resource=pods with=timeout optional": {1, nil, ""},
	} {
		t.Run(rule, func(t *testing.T) {
			e, effects := injectorOf(t, rule)
			got := write(t.Context(), e)
			assert.Equal(t, want.times, got.times)
			assert.ErrorIs(t, got.err, want.err)
			if want.effect != "" {
				assert.Equal(t, map[string]int{want.effect: 1}, effects)
			}
			assert.Empty(t, e.set.Unfired())
		})
	}
}

// TestDrop waits until the caller gives up.
func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := injectorOf(t, "drop store/put")
		gaveUp := errors.New("gave up")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, gaveUp)
		defer cancel()
		began := time.Now()
		assert.Equal(t, called{0, gaveUp}, write(ctx, e))
		assert.Equal(t, 5*time.Second, time.Since(began))
	})
}

// TestEnd lets what waits happen when its server stops, and what comes later.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := injectorOf(t, "hold store/put", "fail store/put with=timeout")
		done := make(chan called)
		go func() { done <- write(t.Context(), e) }()
		synctest.Wait()
		require.Len(t, e.set.Rules()[0].Gate().Waiting(), 1)
		e.End()
		assert.Equal(t, called{1, nil}, <-done)
		assert.Equal(t, called{1, nil}, write(t.Context(), e))
		assert.False(t, e.Active())
	})
}

// TestNoEffect says of an effect that there is none.
func TestNoEffect(t *testing.T) {
	e := NewInjector(setOf(t, "compact store/put"), "a", Effects{})
	got := write(t.Context(), e)
	assert.EqualError(t, got.err, `rule "compact store/put": compact cannot be done here`)
	assert.Zero(t, got.times)
}

// TestNilInjector injects nothing.
func TestNilInjector(t *testing.T) {
	var e *Injector
	assert.Equal(t, called{1, nil}, write(t.Context(), e))
	e.End()
}

// An effect that takes long ends with the server, and the operation goes on.
func TestEndDuringEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := fault.New(fault.Config{})
		_, err := set.Inject("lose-leader store/put")
		require.NoError(t, err)
		i := NewInjector(set, "apiserver-0", Effects{LoseLeader: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		time.AfterFunc(time.Second, i.End)
		assert.Equal(t, called{1, nil}, write(context.Background(), i))
	})
}

// TestPartitionOfInjector heals when the server ends.
func TestPartitionOfInjector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := injectorOf(t, "partition store server=a", "partition store server=b optional")
		type told struct {
			partitioned bool
			at          time.Duration
		}
		var got []told
		began := time.Now()
		stop := i.OnPartition(func(partitioned bool) { got = append(got, told{partitioned, time.Since(began)}) })
		assert.Equal(t, []told{{true, 0}}, got, "it is cut already")
		time.Sleep(time.Second)
		i.End()
		synctest.Wait()
		assert.Equal(t, []told{{true, 0}, {false, time.Second}}, got)
		i.set.Close()
		stop()
		assert.Len(t, got, 2)
	})
	var none *Injector
	none.OnPartition(func(bool) { t.Error("there are no rules") })()
	none.OnFire(fault.Operation{Point: "signal/HasBeenReady"}, func() { t.Error("there are no rules") })
}
