package scenarios

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestCurrentLine fails when testscript no longer has the fields that currentLine
// reads.
func TestCurrentLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.txtar")
	if err := os.WriteFile(file, []byte("# A comment.\n\nwhere 'am I' # here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	called := false
	shim := &scriptT{}
	testscript.RunT(shim, testscript.Params{
		Files: []string{file},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"where": func(ts *testscript.TestScript, _ bool, _ []string) {
				called = true
				number, text, ok := currentLine(ts)
				if number != 3 || text != "where 'am I' # here" || !ok {
					t.Errorf("testscript has changed: line %d is %q, %t", number, text, ok)
				}
			},
		},
	})
	if !called || shim.failed {
		t.Errorf("the script has not run:\n%s", &shim.log)
	}
}
