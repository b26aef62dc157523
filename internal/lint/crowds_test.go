package lint

import (
	"fmt"
	"testing"
)

// mostFiles is how many files a package may have beside its tests: with more, a reader no longer
// finds the one they need by its name.
const mostFiles = 30

// crowded is the rule that a package is cut into rooms before it has too many files.
func crowded(t *tree) []string {
	count := map[string]int{}
	var complaints []string
	for _, f := range t.files {
		if !f.isGo() || f.isTest() || t.nested(f) {
			continue
		}
		if count[f.dir()]++; count[f.dir()] == mostFiles+1 {
			complaints = append(complaints, fmt.Sprintf("the package %s has more than %d files: give what belongs together a package of its own", f.dir(), mostFiles))
		}
	}
	return complaints
}

func TestCrowded(t *testing.T) { obeys(t, crowded(repository(t))) }

func TestCrowdedComplains(t *testing.T) {
	good, bad := map[string]string{"a/a_test.go": "package a"}, map[string]string{}
	for number := range mostFiles + 1 {
		name := fmt.Sprintf("a/a%d.go", number)
		if bad[name] = "package a"; number < mostFiles {
			good[name] = "package a"
		}
	}
	try(t, crowded, []fixture{{"good", good, nil}, {"bad", bad, []string{"the package a has more than 30 files"}}})
}
