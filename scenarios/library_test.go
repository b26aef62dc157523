package scenarios

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/internal/sample"
	"snowglobe.test/scenarios/script"
)

func TestLibrary(t *testing.T) { Test(t) }

// TestLibraryInRealTime runs one of 40 scripts, or with -all each.
func TestLibraryInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("some scripts wait for seconds")
	}
	for i, one := range Library() {
		if !sample.Has(i, 40) {
			continue
		}
		t.Run(one.Name, func(t *testing.T) {
			if !alone(one) {
				t.Parallel()
			}
			result := Run(t.Context(), one, Options{RealTime: true})
			want := Passed
			if bytes.Contains(one.Text(), []byte("[!virtual] skip")) {
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
	for _, one := range Library() {
		assert.True(t, bytes.Equal(script.Format(one.Text()), one.Text()), "%s is not in its standard form; run: go run ./cmd/snowglobe scenario fmt %s", one.File, one.File)
		mistakes, remarks := Lint(one)
		for _, mistake := range mistakes {
			t.Error(mistake)
		}
		for _, remark := range remarks {
			t.Error(remark)
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
	for _, one := range Library() {
		lines := script.Comment(one.Lines())
		match := systemsLine.FindStringSubmatch(lines[len(lines)-1])
		if match == nil {
			t.Errorf("%s: the last line of its first comment is not like: # Systems: S6, S11.", one.File)
			continue
		}
		for _, system := range strings.Split(match[1], ", ") {
			scripts[system] = append(scripts[system], one.Name)
		}
	}
	for i := range systemsCount {
		system := fmt.Sprintf("S%d", i+1)
		names := scripts[system]
		assert.GreaterOrEqual(t, len(names), 2, "%s has the scripts %v, want two", system, names)
		delete(scripts, system)
	}
	for system, names := range scripts {
		t.Errorf("there is no system %s, which %v name", system, names)
	}
}
