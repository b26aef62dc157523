package scenarios

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"
)

// mutationsFile is the file of a script that holds its mutations.
const mutationsFile = "mutations.yaml"

// Mutation breaks what a script demonstrates. A script that passes in spite of it
// demonstrates nothing. Exactly one of Insert, Remove, Replace and Answer is set; the
// regular expressions use Go's syntax.
type Mutation struct {
	// Name says what is broken.
	Name string `json:"name"`
	// Insert is commands, one per line, that are inserted after the lines that match After.
	Insert string `json:"insert,omitempty"`
	After  string `json:"after,omitempty"`
	// Remove matches the command lines that are left out.
	Remove string `json:"remove,omitempty"`
	// Replace matches text, in commands and files, that becomes With. With may refer to
	// groups, as $1.
	Replace string `json:"replace,omitempty"`
	With    string `json:"with,omitempty"`
	// Answer gives the clients of the script a different status code from the server's.
	Answer *OtherAnswer `json:"answer,omitempty"`
}

// OtherAnswer replaces one HTTP status code with another.
type OtherAnswer struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Mutations returns the mutations in the script's file mutations.yaml, or none if it has
// no such file.
func (s Script) Mutations() ([]Mutation, error) {
	for _, file := range txtar.Parse(s.text).Files {
		if file.Name != mutationsFile {
			continue
		}
		var mutations []Mutation
		if err := yaml.UnmarshalStrict(file.Data, &mutations); err != nil {
			return nil, fmt.Errorf("%s: %s: %w; a mutation has a name and one of insert (with after), remove, replace (with with) and answer", s.File, mutationsFile, err)
		}
		for _, m := range mutations {
			if _, err := s.Mutate(m); err != nil {
				return nil, err
			}
		}
		return mutations, nil
	}
	return nil, nil
}

// Mutate returns the script with a mutation applied. A mutation that changes nothing is an
// error.
func (s Script) Mutate(m Mutation) (Script, error) {
	wrong := func(format string, args ...any) (Script, error) {
		return Script{}, fmt.Errorf("%s: mutation %q: %w", s.File, m.Name, fmt.Errorf(format, args...))
	}
	pattern, err := m.pattern()
	if err != nil {
		return wrong("%w", err)
	}
	if m.Answer != nil {
		s.mutation = &m
		return s, nil
	}
	archive := txtar.Parse(s.text)
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == mutationsFile })
	before := txtar.Format(archive)
	switch {
	case m.Replace != "":
		archive.Comment = pattern.ReplaceAll(archive.Comment, []byte(m.With))
		for i := range archive.Files {
			archive.Files[i].Data = pattern.ReplaceAll(archive.Files[i].Data, []byte(m.With))
		}
	default:
		archive.Comment = m.edit(archive.Comment, pattern)
	}
	text := txtar.Format(archive)
	if bytes.Equal(text, before) {
		return wrong("nothing matches %q", pattern)
	}
	s.text = text
	return s, nil
}

// pattern checks the mutation and compiles its regular expression.
func (m Mutation) pattern() (*regexp.Regexp, error) {
	var of string
	kinds := 0
	for _, kind := range []struct {
		set     bool
		pattern string
	}{{m.Insert != "", m.After}, {m.Remove != "", m.Remove}, {m.Replace != "", m.Replace}, {m.Answer != nil, ""}} {
		if kind.set {
			kinds++
			of = kind.pattern
		}
	}
	switch {
	case m.Name == "":
		return nil, fmt.Errorf("it needs a name, which says what is broken")
	case kinds != 1:
		return nil, fmt.Errorf("it needs exactly one of insert, remove, replace and answer")
	case (m.Insert != "") != (m.After != ""):
		return nil, fmt.Errorf("insert and after belong together")
	}
	return regexp.Compile(of)
}

// edit inserts or removes lines of commands. Comments stay as they are.
func (m Mutation) edit(commands []byte, pattern *regexp.Regexp) []byte {
	var edited strings.Builder
	for line := range strings.Lines(string(commands)) {
		matches := !strings.HasPrefix(line, "#") && pattern.MatchString(strings.TrimSpace(line))
		if !matches || m.Remove == "" {
			edited.WriteString(line)
		}
		if matches && m.Insert != "" {
			edited.WriteString(strings.TrimSuffix(m.Insert, "\n") + "\n")
		}
	}
	return []byte(edited.String())
}

// transport changes the answers to the script's requests.
func (m *Mutation) transport(next http.RoundTripper) http.RoundTripper {
	return otherAnswer{next, *m.Answer}
}

type otherAnswer struct {
	next http.RoundTripper
	code OtherAnswer
}

// RoundTrip implements http.RoundTripper.
func (o otherAnswer) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(req)
	if err == nil && response.StatusCode == o.code.From {
		response.StatusCode = o.code.To
	}
	return response, err
}
