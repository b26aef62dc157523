package stub_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/fakes/stub"
)

type table = stub.Table[string, string]
type rule = stub.Rule[string, string]

// newTable returns a table whose fake answers with the request in capitals.
func newTable() *table {
	return stub.NewTable(func(_ context.Context, request string) (string, error) {
		return strings.ToUpper(request), nil
	})
}

func says(answer string) func(context.Context, string) (string, error) {
	return func(context.Context, string) (string, error) { return answer, nil }
}

// asked serves requests one after the other.
func asked(t *testing.T, table *table, requests ...string) []string {
	t.Helper()
	var answers []string
	for _, request := range requests {
		answer, err := table.Serve(t.Context(), request)
		require.NoError(t, err)
		answers = append(answers, answer)
	}
	return answers
}

func TestRules(t *testing.T) {
	table := newTable()
	table.Use(rule{Name: "old", Answer: says("old")})
	removeA := table.Use(rule{Name: "a", When: func(request string) bool { return request == "a" }, Answer: says("new")})
	table.Use(rule{Name: "first", Times: 1, Answer: says("once")})
	assert.Equal(t, []string{"once", "new", "old"}, asked(t, table, "a", "a", "b"))

	removeA()
	removeA()
	assert.Equal(t, []string{"old"}, asked(t, table, "a"), "the rules that are left")

	undo := table.Reply("", errors.New("not today"))
	_, err := table.Serve(t.Context(), "a")
	assert.EqualError(t, err, "not today")
	undo()
	assert.Equal(t, []string{"old"}, asked(t, table, "b"))

	var names []string
	for _, call := range table.Calls() {
		names = append(names, call.Rule)
	}
	assert.Equal(t, []string{"first", "a", "old", "old", "", "old"}, names)
}

// TestRulesWithoutAnswer are about what else happens to a request.
func TestRulesWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		table.Use(rule{Name: "deny", When: func(request string) bool { return request == "b" }, Answer: says("no")})
		gate := table.Hold(nil)
		table.Use(rule{Name: "slow", Delay: time.Minute})

		began := time.Now()
		var answers sync.Map
		var requests sync.WaitGroup
		for _, request := range []string{"a", "b"} {
			requests.Go(func() {
				answer, err := table.Serve(t.Context(), request)
				assert.NoError(t, err)
				answers.Store(request, answer)
			})
		}
		require.NoError(t, gate.Await(t.Context(), 2))
		assert.Equal(t, time.Minute, time.Since(began), "the newest rule is first")
		table.Use(rule{Name: "late", Answer: says("late")})
		time.Sleep(time.Hour)
		for _, call := range table.Calls() {
			assert.False(t, call.Done, call.Request)
		}
		gate.Open()
		requests.Wait()
		for request, want := range map[string]string{"a": "A", "b": "no"} {
			answer, _ := answers.Load(request)
			assert.Equal(t, want, answer, "a rule that came later changes nothing")
		}
		rules := map[string]string{}
		for _, call := range table.Calls() {
			rules[call.Request] = call.Rule
			assert.Equal(t, began, call.Arrived)
			assert.Equal(t, began.Add(time.Minute+time.Hour), call.Answered)
		}
		assert.Equal(t, map[string]string{"a": "slow, hold", "b": "slow, hold, deny"}, rules)
	})
}

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		gate := table.Hold(func(request string) bool { return request == "held" })
		assert.Equal(t, []string{"FREE"}, asked(t, table, "free"))

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the client has left"))
		defer cancel()
		_, err := table.Serve(ctx, "held")
		assert.EqualError(t, err, "held at a gate: the client has left")
		require.NoError(t, gate.Await(t.Context(), 1), "it has been here")
		assert.EqualError(t, gate.Await(ctx, 2), "1 of 2 requests have come to the gate: the client has left")

		gate.Open()
		gate.Open()
		for range 20 { // a client that leaves makes no difference at an open gate
			answer, err := table.Serve(ctx, "held")
			require.NoError(t, err)
			assert.Equal(t, "HELD", answer)
		}
	})
}

func TestDelayEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		table.Use(rule{Delay: time.Hour})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := table.Serve(ctx, "a")
		assert.EqualError(t, err, "delayed by 1h0m0s: context deadline exceeded")
		assert.Equal(t, time.Minute, time.Since(began))
	})
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		table.Use(rule{When: func(request string) bool { return request == "slow" }, Delay: time.Minute})
		go func() { _, _ = table.Serve(t.Context(), "slow") }()
		asked(t, table, "a")
		began := time.Now()
		calls, err := table.Await(t.Context(), 1)
		require.NoError(t, err)
		assert.Zero(t, time.Since(began))
		assert.NotEmpty(t, calls)
		calls, err = table.Await(t.Context(), 2)
		require.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(began))
		assert.Len(t, calls, 2)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		calls, err = table.Await(ctx, 3)
		assert.EqualError(t, err, "2 of 3 requests have been answered: context deadline exceeded")
		assert.Len(t, calls, 2)
	})
}

// TestAnswerThatDoesNotReturn has a call end all the same, so that no client awaits it
// in vain.
func TestAnswerThatDoesNotReturn(t *testing.T) {
	for name, c := range map[string]struct {
		rule rule
		want string
	}{
		"panic":         {rule{Answer: func(context.Context, string) (string, error) { panic("oops") }}, "a rule for this request did not return: oops"},
		"panic in when": {rule{When: func(string) bool { panic("oops") }}, "a rule for this request did not return: oops"},
		"goexit":        {rule{Answer: func(context.Context, string) (string, error) { runtime.Goexit(); return "", nil }}, "a rule for this request did not return: <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable()
			table.Use(c.rule)
			done := make(chan any)
			go func() {
				defer func() { done <- recover() }()
				_, _ = table.Serve(t.Context(), "a")
			}()
			if panicked := <-done; strings.HasPrefix(name, "panic") {
				assert.Equal(t, "oops", panicked, "the panic goes on")
			}
			calls, err := table.Await(t.Context(), 1)
			require.NoError(t, err)
			assert.EqualError(t, calls[0].Err, c.want)
			assert.Empty(t, asked(t, newTable()), "the table can still be used")
		})
	}
}

func TestReject(t *testing.T) {
	table := newTable()
	table.Use(rule{Name: "all", Answer: says("yes")})
	table.Reject("GET", errors.New("want POST"))
	calls, err := table.Await(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, calls, 1)
	assert.Equal(t, "GET", calls[0].Request)
	assert.Empty(t, calls[0].Rule)
	assert.EqualError(t, calls[0].Err, "want POST")
}

// TestConcurrently is for the race detector.
func TestConcurrently(t *testing.T) {
	table := newTable()
	gate := table.Hold(nil)
	var all sync.WaitGroup
	const each = 50
	for range each {
		all.Go(func() { asked(t, table, "a") })
		all.Go(func() { table.Use(rule{Times: 1, Answer: says("b")})() })
		all.Go(func() { _ = table.Calls() })
	}
	all.Go(func() {
		_, err := table.Await(t.Context(), each)
		assert.NoError(t, err)
	})
	gate.Open()
	all.Wait()
	assert.Len(t, table.Calls(), each)
}
