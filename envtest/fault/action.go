package fault

import (
	"time"

	"snowglobe.test/internal/nearest"
)

// ActionKind is what a rule does to an operation.
type ActionKind string

// The kinds of actions. Hold, Delay and Freeze say when an operation goes on,
// and At waits; the others say what becomes of it, and edge.Execute does it.
const (
	Pass ActionKind = "" // do nothing; a Decision may have it, but no rule

	Hold   ActionKind = "hold"   // wait until a gate is opened
	Delay  ActionKind = "delay"  // wait By
	Freeze ActionKind = "freeze" // hold operations about a later revision than At; At 0 holds all

	Fail       ActionKind = "fail"        // it does not happen, and the caller gets the error With
	LoseReply  ActionKind = "lose-reply"  // it happens, and the caller gets the error With instead of the answer
	Drop       ActionKind = "drop"        // it does not happen, and the caller is not told: it waits until it gives up
	Duplicate  ActionKind = "duplicate"   // it happens twice; the answer is the second one
	Cancel     ActionKind = "cancel"      // its context is cancelled, as if the caller had gone; a watch ends
	Compact    ActionKind = "compact"     // the store is compacted at its revision, then it goes on
	LoseLeader ActionKind = "lose-leader" // the store loses its leader, then it goes on
	Crash      ActionKind = "crash"       // the server dies before it

	// Partition cuts a network path until the rule ends; see Set.OnPartition. Fire fires a
	// lifecycle signal before its time; see Set.OnFire. They are about no operation.
	Partition ActionKind = "partition"
	Fire      ActionKind = "fire"
)

// actions are the kinds and their meanings, in the order in which the documentation lists them.
var actions = []struct {
	kind    ActionKind
	meaning string
}{
	{Hold, "it waits until a gate is opened"},
	{Delay, "it waits for the time given by `by=`"},
	{Freeze, "it waits if its revision is later than `at=`; without `at=`, it always waits"},
	{Fail, "it does not happen, and the caller gets the error `with=`"},
	{LoseReply, "it happens, and the caller gets the error `with=` instead of the answer; without `with=`, the connection breaks"},
	{Drop, "it does not happen, and the caller is not told: it waits until it gives up"},
	{Duplicate, "it happens twice, and the caller gets the second answer"},
	{Cancel, "its context is cancelled, as if the caller had gone away; a watch ends"},
	{Compact, "the store discards all revisions before its current one, then the operation goes on"},
	{LoseLeader, "the store loses its leader, then the operation goes on"},
	{Crash, "the server dies before it happens"},
	{Partition, "nothing gets through until the rule ends"},
	{Fire, "it fires before its time, whatever it waits for, and takes away the protection that it gives, as a bug would: at once, or `by=` after its server has begun to serve"},
}

func actionKinds() []ActionKind {
	kinds := make([]ActionKind, len(actions))
	for i, a := range actions {
		kinds[i] = a.kind
	}
	return kinds
}

// waits reports whether the action makes an operation wait, and does not decide its outcome.
func (k ActionKind) waits() bool { return k == Hold || k == Delay || k == Freeze }

// stands reports whether the action is not about operations: it applies for as long as its rule
// stands, and observers are told (OnPartition, OnFire).
func (k ActionKind) stands() bool { return k == Partition || k == Fire }

// Action is what is done to an operation. The zero value is to let it pass.
type Action struct {
	Kind ActionKind
	// By is how long a Delay takes, or how long after its server has begun to serve a Fire
	// fires the signal.
	By time.Duration
	// With is the error, which Fail needs; "" for LoseReply is a broken connection.
	With Failure
	// RetryAfter is sent along with HTTP 429 and 503, in whole seconds.
	RetryAfter time.Duration
	// At is the last revision that Freeze lets pass.
	At int64
}

// problems says what is wrong with the action by itself.
func (a Action) problems(report func(key, format string, args ...any)) {
	only := func(key string, given bool, kinds ...ActionKind) {
		for _, k := range kinds {
			given = given && a.Kind != k
		}
		if given {
			report(key, "%s= is for %s, not for %s", key, nearest.Either(kinds), a.Kind)
		}
	}
	only("by", a.By != 0, Delay, Fire)
	only("with", a.With != "", Fail, LoseReply)
	only("retry-after", a.RetryAfter != 0, Fail, LoseReply)
	only("at", a.At != 0, Freeze)
	switch {
	case a.Kind == Delay && a.By == 0:
		report("by", "a delay needs by=, a time above 0 such as by=3s")
	case a.RetryAfter != 0 && a.With != TooManyRequests && a.With != ServiceUnavailable:
		report("retry-after", "retry-after= goes with %s and %s only", TooManyRequests, ServiceUnavailable)
	}
}
