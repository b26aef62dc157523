package scenarios

import (
	"bytes"
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestLibrary(t *testing.T) { Test(t) }

var allRealTime = flag.Bool("all-real-time", false, "run all scripts of the library in real time, not one of five")

// TestLibraryInRealTime runs one of five scripts, or with -all-real-time all.
func TestLibraryInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("some scripts wait for seconds")
	}
	for i, script := range Library() {
		if i%5 != 0 && !*allRealTime {
			continue
		}
		t.Run(script.Name, func(t *testing.T) {
			if !script.alone() {
				t.Parallel()
			}
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

// systemsLine is the last line of a script's first comment: which systems it is about.
var systemsLine = regexp.MustCompile(`^Systems: (S\d+(?:, S\d+)*)\.$`)

// systemsCount is how many systems there are, from S1 on.
const systemsCount = 20

// TestLibraryCoversSystems wants at least two scripts for each system.
func TestLibraryCoversSystems(t *testing.T) {
	scripts := map[string][]string{}
	for _, script := range Library() {
		lines := comment(script.lines())
		match := systemsLine.FindStringSubmatch(lines[len(lines)-1])
		if match == nil {
			t.Errorf("%s: the last line of its first comment is not like: # Systems: S6, S11.", script.File)
			continue
		}
		for _, system := range strings.Split(match[1], ", ") {
			scripts[system] = append(scripts[system], script.Name)
		}
	}
	for i := range systemsCount {
		system := fmt.Sprintf("S%d", i+1)
		if names := scripts[system]; len(names) < 2 {
			t.Errorf("%s has the scripts %v, want two", system, names)
		}
		delete(scripts, system)
	}
	for system, names := range scripts {
		t.Errorf("there is no system %s, which %v name", system, names)
	}
}
