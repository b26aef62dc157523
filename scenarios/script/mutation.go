package script

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"

	"sigs.k8s.io/yaml"
)

// MutationsFile is the file of a script that holds its mutations.
const MutationsFile = "mutations.yaml"

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
// no such file. A mutation that changes nothing is an error.
func (s Script) Mutations() ([]Mutation, error) {
	for _, file := range s.Files() {
		if file.Name != MutationsFile {
			continue
		}
		var mutations []Mutation
		if err := yaml.UnmarshalStrict([]byte(file.Text), &mutations); err != nil {
			return nil, fmt.Errorf("%s: %s: %w; a mutation has a name and one of insert (with after), remove, replace (with with) and answer", s.File, MutationsFile, err)
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
	pattern, err := m.pattern()
	if err != nil {
		return Script{}, fmt.Errorf("%s: mutation %q: %w", s.File, m.Name, err)
	}
	if m.Answer != nil {
		s.answer = m.Answer
		return s, nil
	}
	draft := s.Edit()
	draft.RemoveFile(MutationsFile)
	before := draft.Script()
	switch {
	case m.Replace != "":
		draft.replace(pattern, m.With)
	case m.Remove != "":
		draft.RemoveCommands(pattern.MatchString)
	default:
		draft.insertAfter(pattern, m.Insert)
	}
	after := draft.Script()
	if bytes.Equal(after.text, before.text) {
		return Script{}, fmt.Errorf("%s: mutation %q: nothing matches %q", s.File, m.Name, pattern)
	}
	return after, nil
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

// Transport returns a transport that replaces the status code From of answers with To.
func (o *OtherAnswer) Transport(next http.RoundTripper) http.RoundTripper {
	return otherAnswer{next, *o}
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
