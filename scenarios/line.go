package scenarios

import (
	"reflect"

	"github.com/rogpeppe/go-internal/testscript"
)

// currentLine returns the number and the text of the line that a script is at.
// testscript does not export them: this function reads its unexported fields, and
// TestCurrentLine fails when they are gone. Without them a timeline only lacks
// the script's own lines.
func currentLine(ts *testscript.TestScript) (number int, text string, ok bool) {
	state := reflect.ValueOf(ts).Elem()
	lineno, line := state.FieldByName("lineno"), state.FieldByName("line")
	if !lineno.IsValid() || !lineno.CanInt() || !line.IsValid() || line.Kind() != reflect.String {
		return 0, "", false
	}
	return int(lineno.Int()), line.String(), true
}
