package scenarios

import (
	"strings"
	"testing"
)

func TestLibrary(t *testing.T) {
	for _, script := range Library() {
		t.Run(script.Name, func(t *testing.T) {
			result := script.Run(t.Context(), Options{})
			report(t, result)
			if result.Status != Passed {
				t.Errorf("%s: %v", result.Status, result.Err)
			}
		})
	}
}

func TestLibraryInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("some scripts wait for seconds")
	}
	want := map[string]Status{"expiry": Skipped}
	for _, script := range Library() {
		t.Run(script.Name, func(t *testing.T) {
			t.Parallel()
			result := script.Run(t.Context(), Options{RealTime: true})
			report(t, result)
			if expected, ok := want[script.Name]; ok && result.Status != expected || !ok && result.Status != Passed {
				t.Errorf("%s: %v", result.Status, result.Err)
			}
		})
	}
}

// report shows the story of a run when the test has failed, or with -v.
func report(t *testing.T, result Result) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() && !testing.Verbose() {
			return
		}
		var text strings.Builder
		if err := WriteStory(&text, result.Records, TextOptions{}); err != nil {
			t.Error(err)
		}
		t.Logf("%s in %s (%s in the script's clock)\n%s\n%s", result.Status, result.Wall, result.Scripted, &text, result.Log)
	})
}
