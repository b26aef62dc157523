package sim

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// additions are files that are added to packages of Go's own source, and their sources here.
var additions = map[string]string{
	"runtime/snowglobe_sim.go":               "overlay/runtime.go.txt",
	"runtime/snowglobe_points.go":            "overlay/points.go.txt",
	"runtime/snowglobe_locks.go":             "overlay/locks.go.txt",
	"runtime/snowglobe_surw.go":              "overlay/surw.go.txt",
	"runtime/snowglobe_still.go":             "overlay/still.go.txt",
	"sync/snowglobe_sim.go":                  "overlay/sync.go.txt",
	"internal/sync/snowglobe_sim.go":         "overlay/isync.go.txt",
	"testing/snowglobe_sim.go":               "overlay/testing.go.txt",
	"testing/synctest/snowglobe_sim.go":      "overlay/synctest.go.txt",
	"runtime/snowglobe_copies_linux.go":      "overlay/copies.go.txt",
	"internal/runtime/maps/snowglobe_sim.go": "overlay/maps.go.txt",
	"runtime/snowglobe_environment.go":       "overlay/environment.go.txt",
	"syscall/snowglobe_sim.go":               "overlay/syscall.go.txt",
	"os/user/snowglobe_sim.go":               "overlay/user.go.txt",
}

// edit is a unified diff of Go's own source, below GOROOT/src. The text before the diff of the
// first file says what it is for.
type edit struct {
	name  string // of the diff
	path  string // in overlay
	files []*gitdiff.File
}

// knownGo are the releases of Go whose source the edits are for, such as go1.26. Each has a folder
// with the edits that differ from release to release; overlay itself has those that do not.
func knownGo() ([]string, error) {
	folders, err := fs.Glob(overlay, "overlay/go1.*")
	for i, folder := range folders {
		folders[i] = path.Base(folder)
	}
	return folders, err
}

// allEdits are all changes to the source of a release of Go. They touch different lines, so that
// any of them applies without the others.
func allEdits(release string) ([]edit, error) {
	names, err := fs.Glob(overlay, "overlay/*.diff")
	if err != nil {
		return nil, err
	}
	own, err := fs.Glob(overlay, "overlay/"+release+"/*.diff")
	if err != nil {
		return nil, err
	}
	names = append(names, own...)
	edits := make([]edit, len(names))
	for i, name := range names {
		if edits[i], err = readEdit(name); err != nil {
			return nil, err
		}
	}
	return edits, nil
}

func readEdit(name string) (edit, error) {
	text, err := overlay.ReadFile(name)
	if err != nil {
		return edit{}, err
	}
	files, _, err := gitdiff.Parse(bytes.NewReader(text))
	if err != nil {
		return edit{}, fmt.Errorf("%s: %w", name, err)
	}
	return edit{name: path.Base(name), path: name, files: files}, nil
}

// apply returns a file's text with what a diff changes in it. The text that a hunk replaces
// must be there exactly once, on whatever line: a patch release of Go moves lines, and the
// edits should fit it all the same.
func (e edit) apply(file *gitdiff.File, text string) (string, error) {
	for _, hunk := range file.TextFragments {
		var before, after strings.Builder
		for _, line := range hunk.Lines {
			if line.Old() {
				before.WriteString(line.Line)
			}
			if line.New() {
				after.WriteString(line.Line)
			}
		}
		if found := strings.Count(text, before.String()); found != 1 {
			return "", fmt.Errorf("%s: there is %d times, not 1, what %s has at line %d: %q", file.OldName, found, e.name, hunk.OldPosition, before.String())
		}
		text = strings.Replace(text, before.String(), after.String(), 1)
	}
	return text, nil
}
