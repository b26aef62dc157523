// Package explore owns the search for runs of a script that fail: it generates seeds and
// plans of faults, keeps those that show a new interleaving of events and varies them first,
// and shrinks what fails to one script that a person can read and that repeats it.
//
// It runs nothing by itself. A Runner runs a script, each time in a new process, so
// that nothing but the script decides what happens; package worker has one.
//
//	report, err := explore.Config{Script: script, Runner: runner, Runs: 500}.Explore(ctx)
package explore
