// Package sample chooses what a test runs when all of it would take too long: another part
// after each commit, so that over time everything runs. It is for tests alone.
package sample

import (
	"flag"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

var all = flag.Bool("all", false, "run everything of which tests run a part that changes with each commit")

// All reports whether -all asks for everything.
func All() bool { return *all }

// Turn is how many commits the checkout has; without git it is 0.
func Turn(t testing.TB) int {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "rev-list", "--count", "HEAD").Output()
	if err != nil {
		return 0
	}
	count, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatalf("git counts %q commits", out)
	}
	return count
}

// Has reports whether element i of a list is in the turn of a commit: one of n is, or with
// -all every one.
func Has(turn, i, n int) bool { return *all || (i+turn)%n == 0 }
