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
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"snowglobe.test/internal/nearest"
)

const extension = ".txtar"

//go:embed library
var library embed.FS

// Script is one scenario.
type Script struct {
	// Name is the base name of the file, without its extension.
	Name string
	// File is what errors call the script: the path it was read from, or its
	// path in the repository if it is part of the library.
	File string

	text     []byte
	mutation *Mutation // one that changes answers; nil for none
}

// Library returns the scripts that come with the package, sorted by folder and name.
func Library() []Script {
	var scripts []Script
	err := fs.WalkDir(library, "library", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := library.ReadFile(file)
		if err != nil {
			return err
		}
		scripts = append(scripts, newScript(path.Join("scenarios", file), text))
		return nil
	})
	if err != nil {
		panic(err) // it is embedded: without it the package would not compile
	}
	return scripts
}

// Find returns the scripts that the names stand for: a file, all scripts in a
// folder, or one script in the library. No names at all means the whole library.
func Find(names ...string) ([]Script, error) {
	if len(names) == 0 {
		return Library(), nil
	}
	var found []Script
	for _, name := range names {
		scripts, err := find(name)
		if err != nil {
			return nil, err
		}
		found = append(found, scripts...)
	}
	return found, nil
}

func find(name string) ([]Script, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return readFolder(name)
	case err == nil:
		script, err := Read(name)
		return []Script{script}, err
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("script: %w", err)
	}
	var known []string
	for _, script := range Library() {
		if script.Name == name {
			return []Script{script}, nil
		}
		known = append(known, script.Name)
	}
	return nil, fmt.Errorf("script %q is neither a file nor in the library%s (snowglobe scenario list lists the library)", name, nearest.DidYouMean(name, known))
}

func readFolder(folder string) ([]Script, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"+extension))
	if err != nil {
		return nil, fmt.Errorf("scripts of folder %s: %w", folder, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %s holds no script: none of its files ends in %s", folder, extension)
	}
	slices.Sort(files)
	scripts := make([]Script, 0, len(files))
	for _, file := range files {
		script, err := Read(file)
		if err != nil {
			return nil, err
		}
		scripts = append(scripts, script)
	}
	return scripts, nil
}

// Read reads a script from a file.
func Read(file string) (Script, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Script{}, fmt.Errorf("script: %w", err)
	}
	if filepath.Ext(file) != extension {
		return Script{}, fmt.Errorf("script %s: the name of a script ends in %s", file, extension)
	}
	return newScript(file, text), nil
}

func newScript(file string, text []byte) Script {
	return Script{Name: strings.TrimSuffix(filepath.Base(file), extension), File: file, text: text}
}

// lines returns the commands and comments of the script, without its files.
func (s Script) lines() []string {
	return strings.Split(string(txtar.Parse(s.text).Comment), "\n")
}

// Title returns the script's first comment: what it shows, in a sentence or two.
func (s Script) Title() string {
	return strings.Join(comment(s.lines()), " ")
}

// comment returns the text of the comment at the beginning of lines.
func comment(lines []string) []string {
	var text []string
	for _, line := range lines {
		words, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		text = append(text, strings.TrimSpace(words))
	}
	return text
}

// Parse makes a script from a text. File is what errors call it; its base name without
// the extension is the script's name.
func Parse(file string, text []byte) Script { return newScript(file, text) }
