package script

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"
)

// File is a file of a script.
type File struct {
	Name, Text string
	Line       int // of the script, before its text
}

// Files returns the files of the script in their order.
func (s Script) Files() []File {
	archive := txtar.Parse(s.text)
	line := bytes.Count(archive.Comment, []byte("\n"))
	var files []File
	for _, file := range archive.Files {
		line++ // with its name
		files = append(files, File{file.Name, string(file.Data), line})
		line += bytes.Count(file.Data, []byte("\n"))
	}
	return files
}

// LineError is an error that is at a line of a file.
type LineError struct {
	Line int // from 1
	Err  error
}

// Error implements error.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong at the line.
func (e *LineError) Unwrap() error { return e.Err }

// Mistake is the error of a check of one of the script's files, with the line of the script
// where it is.
func (s Script) Mistake(in File, err error) error {
	line := in.Line + 1
	if at, ok := errors.AsType[*LineError](err); ok {
		line, err = in.Line+at.Line, at.Err
	}
	return fmt.Errorf("%s: %s: %w", s.Place(line), in.Name, err)
}

// ReadYAML reads YAML as into wants it: an unknown field is an error.
func ReadYAML(text string, into any) error {
	return yamlError(text, yaml.UnmarshalStrict([]byte(text), into), yaml.YAMLToJSONStrict)
}

// ReadList reads a list in YAML, whose entries must be valid. Errors call an entry by what
// it is, such as "row 2".
func ReadList[T interface{ Validate() error }](text, what string) ([]T, error) {
	var list []T
	if err := ReadYAML(text, &list); err != nil {
		return nil, err
	}
	for i, entry := range list {
		if err := entry.Validate(); err != nil {
			return nil, fmt.Errorf("%s %d: %w", what, i+1, err)
		}
	}
	return list, nil
}

// ListCheck returns a check of a list that ReadList reads.
func ListCheck[T interface{ Validate() error }](what string) func(text string) error {
	return func(text string) error {
		_, err := ReadList[T](text, what)
		return err
	}
}

// ReadAnyYAML reads YAML, whatever it says.
func ReadAnyYAML(text string, into any) error {
	return yamlError(text, yaml.Unmarshal([]byte(text), into), yaml.YAMLToJSON)
}

// yamlError is an error of the YAML package in fewer words. Whether the text is no YAML, or
// says what it should not, tells whether it converts.
func yamlError(text string, err error, convert func([]byte) ([]byte, error)) error {
	if err == nil {
		return nil
	}
	if _, invalid := convert([]byte(text)); invalid != nil {
		return atLine(invalid)
	}
	words := strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: ")
	return errors.New(strings.TrimPrefix(words, "json: "))
}

var yamlLine = regexp.MustCompile(`(?s)^yaml: (?:unmarshal errors:\s*)?line (\d+): (.*)`)

// atLine gives an error about text that is no YAML its line, for people. No YAML package of
// ours has it but in words; with others, or none as in an error in the first line, the error
// is told as it is, at the first line.
func atLine(invalid error) error {
	line, words := 1, strings.TrimPrefix(invalid.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(invalid.Error()); m != nil {
		line, _ = strconv.Atoi(m[1])
		words = m[2]
	}
	return &LineError{line, errors.New(strings.ReplaceAll(words, "\n  ", "; "))}
}
