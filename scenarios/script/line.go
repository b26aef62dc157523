package script

import (
	"errors"
	"fmt"
	"strings"
)

// Negation before a command says that it must fail.
const Negation = "!"

// Line is a line of a script that is a command.
type Line struct {
	Number     int
	Conditions []string // such as "!virtual"
	Negated    bool     // it must fail
	Words      []string // the command and its arguments, with variables such as $CA unexpanded
	Variable   bool     // a word has a variable in it
}

// Commands parses the command lines; a script without any is an error. The error joins one
// for each line that is wrong, which begins with its place.
func (s Script) Commands() ([]Line, error) {
	if err := s.checkText(); err != nil {
		return nil, err
	}
	var found []Line
	var errs []error
	for i, text := range s.Lines() {
		line, err := ParseLine(text)
		line.Number = i + 1
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", s.Place(line.Number), err))
		case len(line.Words) > 0:
			found = append(found, line)
		}
	}
	if len(found) == 0 && len(errs) == 0 {
		return nil, fmt.Errorf("%s: the script is empty: it has no command; snowglobe scenario new writes one to begin with", s.Place(1))
	}
	return found, errors.Join(errs...)
}

// Place names a line in errors, as FILE:LINE.
func (s Script) Place(line int) string { return fmt.Sprintf("%s:%d", s.File, line) }

// ParseLine reads a line, which has no words if there is no command on it.
func ParseLine(text string) (Line, error) {
	words, variable, err := SplitWords(text, nil)
	line := Line{Variable: variable}
	for len(words) > 0 && strings.HasPrefix(words[0], "[") && strings.HasSuffix(words[0], "]") {
		line.Conditions = append(line.Conditions, strings.Trim(words[0], "[]"))
		words = words[1:]
	}
	if len(words) > 0 && words[0] == Negation {
		line.Negated, words = true, words[1:]
	}
	if err == nil && len(words) == 0 && (line.Negated || len(line.Conditions) > 0) {
		err = errors.New("a command is missing at the end of the line")
	}
	line.Words = words
	return line, err
}

var errQuote = errors.New("a quoted argument does not end")

// SplitWords cuts a line into words, as the script engine does: 'quotes' keep words
// together, two quotes within them stand for one, and # begins a comment. What is not in quotes
// is expanded; a nil expand leaves it as it is.
func SplitWords(line string, expand func(string) string) (words []string, variable bool, err error) {
	var word, bare strings.Builder
	inWord, quoted := false, false
	endBare := func() {
		text := bare.String()
		bare.Reset()
		if expand != nil {
			text = expand(text)
		}
		word.WriteString(text)
	}
	end := func() {
		endBare()
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\'' && quoted && strings.HasPrefix(line[i+1:], "'"):
			word.WriteByte(c)
			i++
		case c == '\'':
			endBare()
			quoted, inWord = !quoted, true
		case quoted:
			word.WriteByte(c)
		case c == '#':
			end()
			return words, variable, nil
		case c == ' ' || c == '\t' || c == '\r':
			end()
		default:
			variable = variable || c == '$'
			inWord = true
			bare.WriteByte(c)
		}
	}
	if quoted {
		return nil, false, errQuote
	}
	end()
	return words, variable, nil
}
