package process

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// setHandlers sets handlers of the program's own until the test ends.
func setHandlers(t *testing.T, errs []utilruntime.ErrorHandler, panics []panicHandler) {
	beforeErrors, beforePanics := utilruntime.ErrorHandlers, utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers, utilruntime.PanicHandlers = beforeErrors, beforePanics })
	utilruntime.ErrorHandlers, utilruntime.PanicHandlers = errs, panics
}

// fail reports an error and panics, as code of upstream's does.
func fail(who string) {
	utilruntime.HandleError(errors.New("error of " + who))
	defer func() { _ = recover() }()
	defer utilruntime.HandleCrash()
	panic("panic of " + who)
}

// TestOwnHandlers has handlers that the program has set, and none at all, before a member joins:
// they get what strangers report, and a member's log has what the member does.
func TestOwnHandlers(t *testing.T) {
	var heard []string
	errs := []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...any) { heard = append(heard, err.Error()) }}
	panics := []panicHandler{func(_ context.Context, reason any) { heard = append(heard, reason.(string)) }}
	for name, test := range map[string]struct {
		errs   []utilruntime.ErrorHandler
		panics []panicHandler
		want   []string
	}{
		"its own": {errs, panics, []string{"error of stranger", "panic of stranger"}},
		"nil":     {nil, nil, nil},
		"empty":   {[]utilruntime.ErrorHandler{}, []panicHandler{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			setHandlers(t, test.errs, test.panics)
			heard = nil
			var log syncBuffer
			m, err := Join("member", Flags{}, &log, func(error) {})
			require.NoError(t, err)
			fail("stranger")
			<-m.Go(func() { fail("member") })
			m.Leave()
			assert.Equal(t, test.want, heard)
			assert.Regexp(t, `handlers_test\.go:\d+\] "Unhandled Error" err="error of member"`, log.String())
			assert.Contains(t, log.String(), "panic of member")
			assert.NotContains(t, log.String(), "of stranger")
			assert.Len(t, utilruntime.ErrorHandlers, len(test.errs))
			assert.Len(t, utilruntime.PanicHandlers, len(test.panics))
		})
	}
}

// TestHandlersAddedMeanwhile has the program add handlers, and set others, while a member is
// there: they stay when it has left.
func TestHandlersAddedMeanwhile(t *testing.T) {
	var heard []string
	hears := func(name string) utilruntime.ErrorHandler {
		return func(context.Context, error, string, ...any) { heard = append(heard, name) }
	}
	for name, test := range map[string]struct {
		meanwhile func()
		want      []string
	}{
		"added": {
			func() { utilruntime.ErrorHandlers = append(utilruntime.ErrorHandlers, hears("added")) },
			[]string{"before", "added"},
		},
		"set":     {func() { utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{hears("set")} }, []string{"set"}},
		"removed": {func() { utilruntime.ErrorHandlers = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			setHandlers(t, []utilruntime.ErrorHandler{hears("before")}, nil)
			m := join(t, "member", Flags{})
			test.meanwhile()
			m.Leave()
			heard = nil
			utilruntime.HandleError(errors.New("an error"))
			assert.Equal(t, test.want, heard)
		})
	}
}

// TestErrorsInVirtualTime has a stranger report an error in virtual time, after one in real time.
func TestErrorsInVirtualTime(t *testing.T) {
	utilruntime.HandleError(errors.New("an error in real time"))
	join(t, "member", Flags{})
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		utilruntime.HandleError(errors.New("an error"))
		assert.Less(t, time.Since(began), time.Second)
	})
}
