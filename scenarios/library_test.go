package scenarios

import (
	"bytes"
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
			if bytes.Contains(script.Text(), []byte("[!virtual] skip")) {
				want = Skipped
			}
			if result.Status != want {
				t.Errorf("%s, want %s: %v\n%s", result.Status, want, result.Err, transcript(result))
			}
		})
	}
}

// TestLibraryIsTidy holds the library to what fmt and lint say of anybody's scripts.
func TestLibraryIsTidy(t *testing.T) {
	for _, script := range Library() {
		if !bytes.Equal(Format(script.Text()), script.Text()) {
			t.Errorf("%s is not in its standard form; run: go run ./cmd/snowglobe scenario fmt %s", script.File, script.File)
		}
		for _, problem := range script.Lint() {
			t.Error(problem)
		}
	}
}
