//go:build !soak

package soak_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain refuses to run by name what is not built: it would pass without a test. Patterns
// for all or nothing name none.
func TestMain(m *testing.M) {
	flag.Parse()
	for name, none := range map[string]string{"test.run": "^$", "test.bench": "."} {
		if pattern := flag.Lookup(name).Value.String(); pattern != "" && pattern != none {
			fmt.Fprintln(os.Stderr, "these tests take minutes and have a build tag: add -tags soak")
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}
