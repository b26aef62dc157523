package hostile

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Again runs tests and examples of this test binary again, by their names, in a process with
// a hostile environment. Package variables, and what libraries remember for the life of a
// process, are made there.
func Again(t *testing.T, names ...string) {
	t.Helper()
	AgainWith(t, nil, names...)
}

// AgainWith is Again, with variables that replace those of Environment.
func AgainWith(t *testing.T, variables []string, names ...string) {
	t.Helper()
	environment, err := Environment(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^("+strings.Join(names, "|")+")$", "-test.v")
	again.Env = slices.Concat(os.Environ(), environment, variables)
	out, err := again.CombinedOutput()
	if err != nil {
		t.Fatalf("in a hostile environment: %v\n%s", err, out)
	}
	for _, name := range names {
		if !bytes.Contains(out, []byte("\n--- PASS: "+name+" (")) {
			t.Errorf("in a hostile environment %s did not run, or was skipped:\n%s", name, out)
		}
	}
}
