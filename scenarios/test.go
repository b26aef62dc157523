package scenarios

import (
	"strings"
	"testing"
)

// Test runs each script as a subtest in virtual time. A name is a file, a folder
// of scripts, or a script of the library. The story of a script is shown if it
// fails, or with -v.
func Test(t *testing.T, names ...string) {
	t.Helper()
	scripts, err := Find(names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		t.Run(script.Name, func(t *testing.T) {
			result := script.Run(t.Context(), Options{Verbose: testing.Verbose()})
			if result.Status == Failed || testing.Verbose() {
				t.Log(transcript(result))
			}
			switch result.Status {
			case Failed:
				t.Error(result.Err)
			case Skipped:
				t.Skip(result.Reason)
			}
		})
	}
}

// transcript returns the story of a run and the log of its commands.
func transcript(result Result) string {
	var text strings.Builder
	_ = WriteStory(&text, result.Records, TextOptions{}) // a Builder never fails
	return "\n" + text.String() + "\n" + result.Log
}
