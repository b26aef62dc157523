package scenarios

import (
	"reflect"

	"github.com/rogpeppe/go-internal/testscript"
)

// currentLine returns the number and the text of the line that a script is at.
// testscript keeps them to itself; they are read here and nowhere else, and
// TestCurrentLine fails when they are gone. Without them a timeline lacks the
// script's own lines, and nothing else.
func currentLine(ts *testscript.TestScript) (number int, text string, ok bool) {
	state := reflect.ValueOf(ts).Elem()
	lineno, line := state.FieldByName("lineno"), state.FieldByName("line")
	if !lineno.IsValid() || !lineno.CanInt() || !line.IsValid() || line.Kind() != reflect.String {
		return 0, "", false
	}
	return int(lineno.Int()), line.String(), true
}
