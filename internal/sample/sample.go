// Package sample chooses what a test runs when all of it would take too long. It chooses the
// same each time: a commit passes or fails whatever came before it. It is for tests alone.
package sample

import (
	"flag"
	"testing"
)

var all = flag.Bool("all", false, "run everything of which tests run a part")

// All reports whether -all asks for everything.
func All() bool { return *all }

// Long skips a test that takes several seconds of CPU time, unless -all asks for everything.
func Long(t testing.TB) {
	t.Helper()
	if !*all {
		t.Skip("it takes long: run it with -all")
	}
}

// Has reports whether element i of a list is in a part of one in n; with -all, every one is.
func Has(i, n int) bool { return *all || i%n == 0 }
