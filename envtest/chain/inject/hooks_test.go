package inject

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/trace"
)

var errOwn = errors.New("the hook's own error")

// hookRun is what came of a post-start hook.
type hookRun struct {
	ran      int
	returned bool
	failed   error
	events   []string
}

// runHook runs a post-start hook that fails by itself if own is set. ended is
// called when it has come as far as it gets.
func runHook(t *testing.T, i *edge.Injector, own error, ended func()) hookRun {
	var run hookRun
	recorder := trace.NewRecorder("test", 0)
	hooks := &Hooks{Injector: i, Recorder: recorder, Failed: func(err error) { run.failed = err }}
	hook := hooks.PostStart("snow", func(genericapiserver.PostStartHookContext) error {
		run.ran++
		return own
	})
	go func() {
		assert.NoError(t, hook(genericapiserver.PostStartHookContext{Context: t.Context()}))
		run.returned = true
	}()
	synctest.Wait()
	ended()
	hooks.Wait()
	synctest.Wait()
	for _, rec := range recorder.Records() {
		run.events = append(run.events, rec.Event.String())
	}
	return run
}

// TestPostStart is what each action does to a post-start hook, and how one that
// fails ends the server.
func TestPostStart(t *testing.T) {
	const start, end, red = "hook snow start post-start", "hook snow end post-start", "hook snow failed post-start"
	for name, test := range map[string]struct {
		rule   string
		own    error
		want   hookRun
		failed string
	}{
		"passes":        {want: hookRun{ran: 1, returned: true, events: []string{start, end}}},
		"fails itself":  {own: errOwn, want: hookRun{ran: 1, events: []string{start, red + "  the hook's own error"}}, failed: "the hook's own error"},
		"fails by rule": {rule: "fail hook/snow with=error", want: hookRun{ran: 1}, failed: "injected"},
		"dropped":       {rule: "drop hook/snow", want: hookRun{ran: 1, returned: true}},
		"crashed":       {rule: "crash hook/snow", want: hookRun{ran: 1}, failed: "crashed"},
		"held": {rule: "hold hook/snow", want: hookRun{ran: 1, returned: true,
			events: []string{"hook snow held post-start", "hook snow released post-start", start, end}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var rules []string
				if test.rule != "" {
					rules = append(rules, test.rule)
				}
				i := injectorFor(t, rules...)
				got := runHook(t, i, test.own, i.End)
				if test.failed == "" {
					assert.NoError(t, got.failed)
				} else {
					assert.ErrorContains(t, got.failed, `post-start hook "snow" failed: `)
					assert.ErrorContains(t, got.failed, test.failed)
				}
				if test.want.events != nil {
					assert.Equal(t, test.want.events, got.events)
				}
				got.failed, got.events, test.want.events = nil, nil, nil
				assert.Equal(t, test.want, got)
			})
		})
	}
}

// TestDroppedHookRunsLate runs a dropped hook when the server stops, and not before.
func TestDroppedHookRunsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := injectorFor(t, "drop hook/snow")
		ran := false
		hooks := &Hooks{Injector: i, Recorder: trace.NewRecorder("test", 0)}
		hook := hooks.PostStart("snow", func(genericapiserver.PostStartHookContext) error {
			ran = true
			return nil
		})
		require.NoError(t, hook(genericapiserver.PostStartHookContext{Context: t.Context()}))
		synctest.Wait()
		assert.False(t, ran)
		i.End()
		hooks.Wait()
		assert.True(t, ran)
	})
}

// TestPreShutdown is what each action does to a pre-shutdown hook.
func TestPreShutdown(t *testing.T) {
	for rule, want := range map[string]struct {
		ran bool
		err string
	}{
		"delay hook/snow verb=pre-shutdown by=1ms":    {ran: true, err: errOwn.Error()},
		"fail hook/snow verb=pre-shutdown with=error": {err: "injected"},
		"drop hook/snow verb=pre-shutdown":            {},
		"drop hook/snow verb=post-start optional":     {ran: true, err: errOwn.Error()},
	} {
		ran := false
		recorder := trace.NewRecorder("test", 0)
		hooks := &Hooks{Ending: injectorFor(t, rule), Recorder: recorder}
		err := hooks.PreShutdown("snow", func() error {
			ran = true
			return errOwn
		})()
		assert.Equal(t, want.ran, ran, rule)
		if want.err == "" {
			assert.NoError(t, err, rule)
			assert.Empty(t, recorder.Records(), rule)
		} else {
			assert.ErrorContains(t, err, want.err, rule)
			assert.Len(t, recorder.Records(), 2, rule)
		}
	}
}

// upstreamSignal stands in for a lifecycle signal of upstream's.
type upstreamSignal struct{ fired chan struct{} }

func (s *upstreamSignal) Name() string              { return "HasBeenReady" }
func (s *upstreamSignal) Signal()                   { close(s.fired) }
func (s *upstreamSignal) Signaled() <-chan struct{} { return s.fired }

// TestSignal fires a lifecycle signal twice; whoever does so never waits.
func TestSignal(t *testing.T) {
	for rule, fires := range map[string]bool{
		"drop signal/HasBeenReady":           false,
		"crash signal/HasBeenReady":          true,
		"hold signal/HasBeenReady":           true,
		"delay signal/HasBeenReady by=24h":   true,
		"drop signal/NotAcceptingNewRequest": true,
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := injectorFor(t, rule)
				upstream := &upstreamSignal{make(chan struct{})}
				var firing sync.WaitGroup
				signal := NewSignal(upstream, i, &firing)
				signal.Signal()
				signal.Signal()
				synctest.Wait()
				i.End() // what is held goes on
				firing.Wait()
				<-signal.Done()
				select {
				case <-signal.Signaled():
					assert.True(t, fires, "fired")
				default:
					assert.False(t, fires, "not fired")
				}
			})
		})
	}
	upstream := &upstreamSignal{make(chan struct{})}
	signal := NewSignal(upstream, nil, &sync.WaitGroup{})
	signal.Signal()
	<-signal.Done()
	<-signal.Signaled()
}

// TestAuthentication asks about the tokens of service accounts and certificates that
// are good, and about no other credentials.
func TestAuthentication(t *testing.T) {
	account := &user.DefaultInfo{Name: "system:serviceaccount:default:a"}
	certified := &user.DefaultInfo{Name: "jane", Extra: map[string][]string{user.CredentialIDKey: {"X509SHA256=abc"}}}
	for name, test := range map[string]struct {
		who  user.Info
		rule string
		err  string
	}{
		"account":       {account, "fail auth/token caller=system:serviceaccount:default:a with=expired", "expired"},
		"other account": {account, "fail auth/token caller=system:serviceaccount:default:b with=expired", ""},
		"certificate":   {certified, "fail auth/certificate with=unauthorized", "Unauthorized"},
		"crash":         {certified, "crash auth/certificate", "crashed"},
		"another user":  {&user.DefaultInfo{Name: "joe"}, "fail auth/token with=expired", ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := injectorFor(t, test.rule)
			upstream := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
				return &authenticator.Response{User: test.who}, true, nil
			})
			var broken error
			requests := NewRequests(trace.NewRecorder("test", 0), i)
			handler := requests.Outermost(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				response, ok, err := Authentication(upstream, i).AuthenticateRequest(req)
				assert.Equal(t, test.err == "", ok)
				if test.err == "" {
					assert.NoError(t, err)
					assert.Equal(t, test.who, response.User)
				} else {
					assert.ErrorContains(t, err, test.err)
				}
				broken = activeOf(req).conn.err()
			}))
			func() {
				defer func() { _ = recover() }() // of a broken connection
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil))
			}()
			assert.Equal(t, name == "crash", broken != nil)
		})
	}
}
