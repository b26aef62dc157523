package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// The two ways to end a process. A panic is one that upstream has caught.
var ends = map[string]func(){
	"fatal": func() { klog.Fatal("the end") },
	"panic": func() {
		defer utilruntime.HandleCrash()
		panic("the end")
	},
}

// outcome is what has become of a goroutine that would have ended its process.
type outcome struct {
	Crashed  string // the member that has, if any
	Code     int    // with which the process would have ended
	Panic    any    // that has gone on to the bottom of the goroutine
	Returned bool   // to after the end
	Broken   bool   // whether the client of the request is to get no answer
}

// TestCrash ends two processes that are one, in every kind of goroutine.
func TestCrash(t *testing.T) {
	type row struct {
		// where runs f in a goroutine of its own, and fills in what it sees.
		where func(m *Member, o *outcome, f func())
		want  map[string]outcome
	}
	crashed := map[string]outcome{"fatal": {Crashed: "right"}, "panic": {Crashed: "right"}}
	broken := map[string]outcome{"fatal": {Crashed: "right", Broken: true}, "panic": {Crashed: "right", Broken: true}}
	rows := map[string]row{
		"a goroutine":       {func(m *Member, _ *outcome, f func()) { m.Do(f) }, crashed},
		"a goroutine of Go": {func(m *Member, _ *outcome, f func()) { <-m.Go(f) }, crashed},
		"its child":         {func(m *Member, _ *outcome, f func()) { m.Do(func() { inChild(f) }) }, crashed},
		"a request": {
			func(m *Member, o *outcome, f func()) { m.Do(func() { o.Broken = Serve(f) }) },
			map[string]outcome{"fatal": {Crashed: "right"}, "panic": {Panic: "the end"}},
		},
		"far down in a request": {
			func(m *Member, o *outcome, f func()) { m.Do(func() { o.Broken = Serve(func() { deeper(1000, f) }) }) },
			map[string]outcome{"fatal": {Crashed: "right"}, "panic": {Panic: "the end"}},
		},
		// As upstream's filter for timeouts has it.
		"the handler's goroutine of a request": {
			func(m *Member, o *outcome, f func()) {
				m.Do(func() {
					o.Broken = Serve(func() {
						if reason := inChild(func() { Serve(f) }); reason != nil {
							panic(reason)
						}
					})
				})
			},
			map[string]outcome{"fatal": {Crashed: "right", Broken: true}, "panic": {Panic: "the end"}},
		},
		"what a request has started": {
			func(m *Member, o *outcome, f func()) { m.Do(func() { o.Broken = Serve(func() { inChild(f) }) }) },
			broken,
		},
		"what outlives the request that has started it": {
			func(m *Member, o *outcome, f func()) {
				m.Do(func() {
					over, done := make(chan struct{}), make(chan struct{})
					o.Broken = Serve(func() {
						go func() {
							defer close(done)
							<-over
							f()
						}()
					})
					close(over)
					<-done
				})
			},
			crashed,
		},
		"a stranger's goroutine": {
			func(_ *Member, _ *outcome, f func()) { f() },
			map[string]outcome{"fatal": {Code: 255}, "panic": {Panic: "the end"}},
		},
		"a stranger's request": {
			func(_ *Member, o *outcome, f func()) { o.Broken = Serve(f) },
			map[string]outcome{"fatal": {Code: 255}, "panic": {Panic: "the end"}},
		},
		"a goroutine that has left the member": {
			func(m *Member, _ *outcome, f func()) { m.Do(func() {}); f() },
			map[string]outcome{"fatal": {Code: 255}, "panic": {Panic: "the end"}},
		},
	}
	for where, row := range rows {
		for how, end := range ends {
			t.Run(how+" in "+where, func(t *testing.T) {
				got := crash(t, row.where, end)
				assert.True(t, got == row.want[how], "outcome %+v, want %+v", got, row.want[how])
			})
		}
	}
}

// crash ends the process in a goroutine, beside a member that has nothing to do
// with it.
func crash(t *testing.T, where func(*Member, *outcome, func()), end func()) outcome {
	var o outcome
	exit := klog.OsExit
	t.Cleanup(func() { klog.OsExit = exit })
	klog.OsExit = func(code int) {
		o.Code = code
		runtime.Goexit()
	}
	var right, left crashes
	m, err := Join("right", Flags{}, io.Discard, right.add)
	require.NoError(t, err)
	defer m.Leave()
	other, err := Join("left", Flags{}, io.Discard, left.add)
	require.NoError(t, err)
	defer other.Leave()

	o.Panic = inChild(func() {
		where(m, &o, func() {
			end()
			o.Returned = true
		})
	})
	assert.NoError(t, m.Wait(t.Context()))
	assert.NoError(t, left.err(), "the other member has crashed")
	if err := right.err(); err != nil {
		o.Crashed = "right"
		text := err.Error()
		assert.False(t, !strings.Contains(text, "the end") || !strings.Contains(text, "crash_test.go"), "the crash does not say why or where: %v", err)
	}
	return o
}

// inChild runs f in a goroutine, and returns what it has panicked with.
func inChild(f func()) any {
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		f()
	}()
	return <-ended
}

// deeper runs f that many frames further down.
func deeper(frames int, f func()) {
	if frames > 0 {
		deeper(frames-1, f)
		return
	}
	f()
}

// TestGoPanics says that a goroutine has ended when its crash is known.
func TestGoPanics(t *testing.T) {
	var crashed crashes
	m, err := Join("panicking", Flags{}, io.Discard, crashed.add)
	require.NoError(t, err)
	defer m.Leave()
	<-m.Go(func() { panic("the end") })
	assert.ErrorContains(t, crashed.err(), "panicked: the end", "the goroutine has ended, and the crash")
}

// TestFatalLog keeps the fatal line in the log, and not the stacks of all goroutines
// after it.
func TestFatalLog(t *testing.T) {
	var log syncBuffer
	var crashed crashes
	m, err := Join("verbose", Flags{}, &log, crashed.add)
	require.NoError(t, err)
	defer m.Leave()
	stop := make(chan struct{})
	defer close(stop)
	for range 500 {
		go func() { <-stop }()
	}
	<-m.Go(ends["fatal"])
	got := log.String()
	assert.False(t, !strings.Contains(got, "] the end") || !strings.Contains(got, "crash_test.go") || len(got) > 2*stackBytes, "the log has %d bytes: %.2000s", len(got), got)
}

// TestFatalIsSilent keeps what klog writes about a fatal line from the terminal, and what is logged
// after it.
func TestFatalIsSilent(t *testing.T) {
	for name, end := range map[string]func(...any){"with stacks": klog.Fatal, "without": klog.Exit} {
		t.Run(name, func(t *testing.T) {
			stderr := os.Stderr
			read, write, err := os.Pipe()
			require.NoError(t, err)
			os.Stderr = write
			defer func() { os.Stderr = stderr }()
			var log syncBuffer
			m, err := Join("quiet", Flags{}, &log, func(error) {})
			require.NoError(t, err)
			<-m.Go(func() { end("the end") })
			m.Do(func() { klog.Info("after it") })
			m.Leave()
			_ = write.Close()
			os.Stderr = stderr
			text, err := io.ReadAll(read)
			require.NoError(t, err)
			assert.Empty(t, string(text))
			assert.Contains(t, log.String(), "after it")
		})
	}
}

// TestServeAfterCrash still answers the requests by which a server that has crashed
// comes to its end.
func TestServeAfterCrash(t *testing.T) {
	var crashed crashes
	m, err := Join("ending", Flags{}, io.Discard, crashed.add)
	require.NoError(t, err)
	defer m.Leave()
	m.Do(func() {
		assert.True(t, Serve(func() { inChild(ends["fatal"]) }), "a request is answered that was served when the server crashed")
		assert.False(t, Serve(func() {}), "a request is not answered that came later")
	})
	assert.Error(t, crashed.err(), "the server has not crashed")
}

// TestHandlersOfPanic runs what upstream does about the panic of a request besides,
// such as counting it.
func TestHandlersOfPanic(t *testing.T) {
	m := join(t, "serving", Flags{})
	var told any
	reason := inChild(func() {
		m.Do(func() {
			Serve(func() {
				defer utilruntime.HandleCrash(func(reason any) { told = reason })
				panic(errors.New("the end"))
			})
		})
	})
	assert.Equal(t, "the end", fmt.Sprint(told), "the handler was told %v, and the panic went on as %v", told, reason)
	assert.Equal(t, "the end", fmt.Sprint(reason), "the handler was told %v, and the panic went on as %v", told, reason)
}
