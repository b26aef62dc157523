package checkers

import (
	"bytes"
	"embed"
	"fmt"
)

// Known is a history that is known to be bad.
type Known struct {
	Name   string
	Breaks string // the check that rejects it, and the only one
	Why    string // what is wrong
	// History returns a copy of its own.
	History func() *History
}

//go:embed testdata/known/*.jsonl
var knownFiles embed.FS

// known says of each file what is wrong with it.
var known = []Known{
	{Name: "stale-read", Breaks: "linearizability", Why: "a get is answered with a revision that was over before it was asked"},
	{Name: "lost-update", Breaks: "linearizability", Why: "two updates of one revision both succeed"},
	{Name: "lost-write", Breaks: "linearizability", Why: "an object that was created is not found, and no client has deleted it"},
	{Name: "unstored-write", Breaks: "linearizability", Why: "an update is confirmed that the store has never had"},
	{Name: "needless-conflict", Breaks: "linearizability", Why: "an update is refused as a conflict though it had the newest revision"},
	{Name: "list-leaves-out", Breaks: "linearizability", Why: "a consistent list leaves out an object that is there"},

	{Name: "watch-gap", Breaks: "watch", Why: "a watch leaves out a write and goes on"},
	{Name: "watch-order", Breaks: "watch", Why: "two events come in the wrong order"},
	{Name: "watch-again", Breaks: "watch", Why: "a resumed watch tells again what it was resumed after"},
	{Name: "watch-bookmark", Breaks: "watch", Why: "an event comes after a bookmark that said it had been sent"},
	{Name: "watch-selector", Breaks: "watch", Why: "an object leaves the selector and is not DELETED"},
	{Name: "watch-initial", Breaks: "watch", Why: "the initial events end in a bookmark that does not say so"},
	{Name: "watch-too-old", Breaks: "watch", Why: "a watch from a compacted revision begins later, instead of 410"},

	{Name: "list-after-watch", Breaks: "list-watch", Why: "a list shows an object that the watch from the list before has not told of"},
	{Name: "list-without", Breaks: "list-watch", Why: "a list leaves out an object that the watch has told of"},
	{Name: "two-contents", Breaks: "list-watch", Why: "one revision of an object has two contents"},

	{Name: "cache-goes-back", Breaks: "monotonic-reads", Why: "lists from one server's cache go back"},
	{Name: "watch-then-older", Breaks: "monotonic-reads", Why: "a cached get is older than what the same server's watch has told"},
	{Name: "older-than-asked", Breaks: "monotonic-reads", Why: "a list is older than the revision it was asked for"},

	{Name: "risen", Breaks: "resurrection", Why: "an object is modified after it was removed"},
	{Name: "seen-after-delete", Breaks: "resurrection", Why: "an object is there after its deletion was confirmed"},
	{Name: "undeleted", Breaks: "resurrection", Why: "an object that was being deleted is not any more"},

	{Name: "deleted-at-once", Breaks: "finalizers", Why: "an object with a finalizer is removed by its deletion"},
	{Name: "finalizer-taken", Breaks: "finalizers", Why: "a deletion takes a finalizer away"},
	{Name: "gone-unmarked", Breaks: "finalizers", Why: "an object with a finalizer is removed without having been marked"},
}

// KnownBad returns histories that each break one promise, to show that a check can fail.
func KnownBad() []Known {
	all := make([]Known, len(known))
	for i, k := range known {
		k.History = func() *History {
			h, err := readKnown(k.Name)
			if err != nil {
				panic(err) // the files are part of the package, and a test reads them all
			}
			return h
		}
		all[i] = k
	}
	return all
}

func readKnown(name string) (*History, error) {
	name = "testdata/known/" + name + ".jsonl"
	text, err := knownFiles.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return read(name, bytes.NewReader(text))
}
