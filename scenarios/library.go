package scenarios

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"snowglobe.test/internal/nearest"
	"snowglobe.test/scenarios/script"
)

//go:embed library
var library embed.FS

// Library returns the scripts that come with the package, sorted by folder and name.
func Library() []script.Script {
	files, err := fs.Glob(library, "library/*/*"+script.Extension)
	utilruntime.Must(err) // the pattern is right
	var scripts []script.Script
	for _, file := range files {
		text, err := library.ReadFile(file)
		utilruntime.Must(err) // it is embedded: without it the package would not compile
		scripts = append(scripts, script.Parse(path.Join("scenarios", file), text))
	}
	return scripts
}

// Find returns the scripts that the names stand for: a file, all scripts in a
// folder, or one script in the library. No names at all means the whole library.
func Find(names ...string) ([]script.Script, error) {
	if len(names) == 0 {
		return Library(), nil
	}
	var found []script.Script
	for _, name := range names {
		scripts, err := find(name)
		if err != nil {
			return nil, err
		}
		found = append(found, scripts...)
	}
	return found, nil
}

func find(name string) ([]script.Script, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return readFolder(name)
	case err == nil:
		one, err := script.Read(name)
		return []script.Script{one}, err
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("script: %w", err)
	}
	var known []string
	for _, one := range Library() {
		if one.Name == name {
			return []script.Script{one}, nil
		}
		known = append(known, one.Name)
	}
	return nil, fmt.Errorf("script %q is neither a file nor in the library%s (snowglobe scenario list lists the library)", name, nearest.DidYouMean(name, known))
}

func readFolder(folder string) ([]script.Script, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"+script.Extension))
	if err != nil {
		return nil, fmt.Errorf("scripts of folder %s: %w", folder, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %s holds no script: none of its files ends in %s", folder, script.Extension)
	}
	slices.Sort(files)
	scripts := make([]script.Script, 0, len(files))
	for _, file := range files {
		one, err := script.Read(file)
		if err != nil {
			return nil, err
		}
		scripts = append(scripts, one)
	}
	return scripts, nil
}
