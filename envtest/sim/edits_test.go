package sim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEditsAreIndependent is the promise that TestEachEdit stands on: each edit applies to
// Go's source as it is, and the order of all does not matter.
func TestEditsAreIndependent(t *testing.T) {
	toolchain, edits := installedEdits(t)
	source := os.DirFS(filepath.Join(toolchain.root, "src"))
	require.NotEmpty(t, edits)
	for _, e := range edits {
		_, err := edited(source, []edit{e})
		assert.NoError(t, err, e.name)
	}
	forwards, err := edited(source, edits)
	require.NoError(t, err)
	slices.Reverse(edits)
	backwards, err := edited(source, edits)
	require.NoError(t, err)
	assert.Equal(t, forwards, backwards)
}

// installedEdits are those for the Go that runs here.
func installedEdits(t *testing.T) (toolchain, []edit) {
	t.Helper()
	here, err := inFolder(t.Context(), ".")
	require.NoError(t, err)
	release, err := fits(here.version)
	require.NoError(t, err)
	edits, err := allEdits(release)
	require.NoError(t, err)
	return here, edits
}

// TestEditsOfEachRelease has the same edits, by their names, for each release of Go.
func TestEditsOfEachRelease(t *testing.T) {
	known, err := knownGo()
	require.NoError(t, err)
	require.Contains(t, known, "go1.26")
	var first []string
	for _, release := range known {
		edits, err := allEdits(release)
		require.NoError(t, err)
		var names []string
		for _, e := range edits {
			names = append(names, e.name)
		}
		slices.Sort(names)
		assert.Equal(t, slices.Compact(slices.Clone(names)), names, "%s: once each", release)
		if first == nil {
			first = names
		}
		assert.Equal(t, first, names, release)
	}
}

// TestEditsSayWhy reads what stands before the first file of each diff.
func TestEditsSayWhy(t *testing.T) {
	_, edits := installedEdits(t)
	for _, e := range edits {
		text, err := overlay.ReadFile(e.path)
		require.NoError(t, err)
		_, why, err := gitdiff.Parse(strings.NewReader(string(text)))
		require.NoError(t, err)
		assert.NotEmpty(t, strings.TrimSpace(why), "%s: say above its first file why it is needed", e.name)
	}
}

// TestApply is a file in which the text of a hunk is elsewhere, gone, or twice.
func TestApply(t *testing.T) {
	files, _, err := gitdiff.Parse(strings.NewReader("why\n--- x.go\n+++ x.go\n@@ -3,2 +3,2 @@\n a\n-b\n+c\n"))
	require.NoError(t, err)
	e := edit{name: "x.diff", files: files}
	got, err := e.apply(files[0], "1\na\nb\nd\n")
	require.NoError(t, err)
	assert.Equal(t, "1\na\nc\nd\n", got)
	_, err = e.apply(files[0], "a\nc\n")
	assert.EqualError(t, err, `x.go: there is 0 times, not 1, what x.diff has at line 3: "a\nb\n"`)
	_, err = e.apply(files[0], "a\nb\na\nb\n")
	assert.EqualError(t, err, `x.go: there is 2 times, not 1, what x.diff has at line 3: "a\nb\n"`)
}
