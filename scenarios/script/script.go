// Package script owns the text of scripts: it parses lines, words, phases, files, the seed
// and mutations, formats a script, and edits it. It never runs a script, and knows none of
// its commands but "seed" and "clock".
package script

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
)

// Extension ends the names of files with scripts.
const Extension = ".txtar"

// Script is one scenario.
type Script struct {
	// Name is the base name of the file, without its extension.
	Name string
	// File is what errors call the script: the path it was read from, or its
	// path in the repository if it is part of the library.
	File string

	text   []byte
	answer *OtherAnswer // of a mutation that changes answers; nil for none
}

// Parse makes a script from a text. File is what errors call it; its base name without
// the extension is the script's name.
func Parse(file string, text []byte) Script {
	return Script{Name: strings.TrimSuffix(filepath.Base(file), Extension), File: file, text: text}
}

// maxBytes is how long a script can be, with its files.
const maxBytes = 16 << 20

// Read reads a script from a file.
func Read(file string) (Script, error) {
	if filepath.Ext(file) != Extension {
		return Script{}, fmt.Errorf("script %s: the name of a script ends in %s", file, Extension)
	}
	from, err := os.Open(file)
	if err != nil {
		return Script{}, fmt.Errorf("script: %w", err)
	}
	defer func() { _ = from.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(from, maxBytes+1))
	switch {
	case err != nil:
		return Script{}, fmt.Errorf("script: %w", err)
	case len(text) > maxBytes:
		return Script{}, fmt.Errorf("script %s: it is longer than %d MiB, and no script is", file, maxBytes>>20)
	}
	return Parse(file, text), nil
}

// Text is the script as it was read.
func (s Script) Text() []byte { return s.text }

// Answer is how a mutation changes the answers that the clients of the script get; nil if
// none does.
func (s Script) Answer() *OtherAnswer { return s.answer }

// Lines returns the commands and comments of the script, without its files.
func (s Script) Lines() []string {
	return strings.Split(string(txtar.Parse(s.text).Comment), "\n")
}

// Title returns the script's first comment: what it shows, in a sentence or two.
func (s Script) Title() string {
	return strings.Join(Comment(s.Lines()), " ")
}

// Comment returns the text of the comment at the beginning of lines.
func Comment(lines []string) []string {
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

// Phases are the paragraphs of comments that tell the story, after the title.
func (s Script) Phases() []string {
	var phases []string
	for lines := s.Lines(); len(lines) > 0; {
		text := Comment(lines)
		if len(text) == 0 {
			lines = lines[1:]
			continue
		}
		phases = append(phases, strings.Join(text, " "))
		lines = lines[len(text):]
	}
	if s.Title() != "" {
		phases = phases[1:]
	}
	return phases
}

// checkText refuses what is not a text that a person could have written.
func (s Script) checkText() error {
	line := 0
	if bytes.HasPrefix(s.text, []byte("\uFEFF")) {
		return fmt.Errorf("%s:1: the file begins with a byte order mark; save it as UTF-8 without one", s.File)
	}
	for text := range bytes.Lines(s.text) {
		line++
		if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
			return fmt.Errorf("%s:%d: this is not text; a script is a text file in UTF-8", s.File, line)
		}
	}
	return nil
}
