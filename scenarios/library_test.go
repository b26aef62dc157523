package scenarios

import (
	"testing"
)

func TestLibrary(t *testing.T) { Test(t) }

func TestLibraryInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("some scripts wait for seconds")
	}
	for _, script := range Library() {
		t.Run(script.Name, func(t *testing.T) {
			t.Parallel()
			result := script.Run(t.Context(), Options{RealTime: true})
			want := Passed
			if script.Name == "expiry" {
				want = Skipped
			}
			if result.Status != want {
				t.Errorf("%s, want %s: %v\n%s", result.Status, want, result.Err, transcript(result))
			}
		})
	}
}
