package conformance_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance"
)

// A source in upstream's code is a path, and the names in it that follow: "k8s.io/a/b.go, Name".
var (
	sourcePath = regexp.MustCompile(`^((?:sigs\.)?k8s\.io/[\w./-]*\w)`)
	sourceName = regexp.MustCompile(`^\w+$`)
)

// TestSourcesExist shows that the files that cases name as their source are there, in the
// linked release, and that names given beside a file are in it.
func TestSourcesExist(t *testing.T) {
	modules := upstreamModules(t)
	for _, c := range conformance.Cases() {
		require.NotEmpty(t, c.Source, c.ID)
		for part := range strings.SplitSeq(c.Source, ";") {
			part = strings.TrimSpace(part)
			path := sourcePath.FindString(part)
			if path == "" {
				continue // a KEP, or a page
			}
			module, rest := moduleOf(modules, path)
			if !assert.NotEmpty(t, module, "%s: %s is in no module", c.ID, path) {
				continue
			}
			file := filepath.Join(modules[module], filepath.FromSlash(rest))
			text, err := contents(file)
			assert.NoError(t, err, "%s: %s", c.ID, path)
			for _, name := range strings.Split(strings.TrimPrefix(part, path), ",")[1:] {
				if name = strings.TrimSpace(name); sourceName.MatchString(name) {
					assert.True(t, bytes.Contains(text, []byte(name)), "%s: %s has no %s", c.ID, path, name)
				}
			}
		}
	}
}

// upstreamModules are the folders of the modules of Kubernetes, by path.
func upstreamModules(t *testing.T) map[string]string {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}", "all").Output()
	require.NoError(t, err)
	modules := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		modules[path] = dir
	}
	return modules
}

// moduleOf returns the module that a path is in, and the path inside it.
func moduleOf(modules map[string]string, path string) (module, rest string) {
	for candidate := path; candidate != "."; candidate = filepath.Dir(candidate) {
		if modules[candidate] != "" {
			return candidate, strings.TrimPrefix(strings.TrimPrefix(path, candidate), "/")
		}
	}
	return "", ""
}

// contents returns the text of a file, or of all files of a folder and those below it.
func contents(path string) ([]byte, error) {
	var all bytes.Buffer
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	return all.Bytes(), err
}
