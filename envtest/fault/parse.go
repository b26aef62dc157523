package fault

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"snowglobe.test/internal/nearest"
)

// Parse reads a rule. The error says everything that is wrong with it.
func Parse(text string, known Names) (Rule, error) {
	rule, err := parseRule(text, known, 0)
	return rule.Rule, err
}

// parseRule is Parse of a text whose first columns are not the caller's.
func parseRule(text string, known Names, foreign int) (checked, error) {
	if strings.ContainsAny(text, "\n\r") {
		return checked{}, errors.New("a rule is one line; ParsePlan reads several")
	}
	p := &lineParser{known: known, foreign: foreign}
	rule, ok := p.line(text)
	if !ok && len(p.errs) == 0 {
		p.fail(1, `there is no rule: write one such as "hold store/put resource=configmaps"`)
	}
	if len(p.errs) > 0 {
		return checked{}, errors.Join(p.errs...)
	}
	return rule, nil
}

// ParseMatch reads a match, such as "store/put resource=configmaps".
func ParseMatch(text string, known Names) (Match, error) {
	rule, err := parseHold(text, known)
	if err != nil {
		return Match{}, fmt.Errorf("match %q: %w", text, err)
	}
	return rule.Match, nil
}

// parseHold reads a match as a rule of Hold, since every point can be held.
func parseHold(match string, known Names) (checked, error) {
	const hold = string(Hold) + " "
	return parseRule(hold+match, known, len(hold))
}

// SyntaxError says where a rule or a plan is wrong, and why.
type SyntaxError struct {
	File   string // "" if the rule is of no file
	Line   int    // from 1; 0 if the rule is of no file
	Column int    // from 1, in characters
	Reason string
}

// Error is FILE:LINE:COLUMN: REASON, without what is not known.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("column %d: %s", e.Column, e.Reason)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// lineParser reads the lines of a plan, and keeps what is wrong with them.
type lineParser struct {
	file    string
	number  int
	foreign int // columns before the text of the caller
	known   Names
	errs    []error
}

func (p *lineParser) fail(column int, format string, args ...any) {
	p.errs = append(p.errs, &SyntaxError{p.file, p.number, max(column-p.foreign, 1), fmt.Sprintf(format, args...)})
}

// word is a part of a line: KEY=VALUE, or text without a key.
type word struct {
	column   int
	key      string
	hasKey   bool
	text     string
	isQuoted bool
}

// line reads one rule; false if the line has none, or a wrong one.
func (p *lineParser) line(text string) (checked, bool) {
	before := len(p.errs)
	words := p.words(text)
	if len(words) == 0 || len(p.errs) > before {
		return checked{}, false
	}
	var r Rule
	columns := map[string]int{} // of the parts that were there
	p.head(&r, words, columns)
	for _, w := range words[min(2, len(words)):] {
		p.tail(&r, w, columns)
	}
	if len(p.errs) > before {
		return checked{}, false
	}
	kinds, mistakes := r.check(p.known)
	column := func(m mistake) int {
		return cmp.Or(columns[m.part], words[0].column) // what is missing is missed by the action
	}
	slices.SortStableFunc(mistakes, func(a, b mistake) int { return column(a) - column(b) })
	for _, m := range mistakes {
		p.fail(column(m), "%s", m.text)
	}
	return checked{r, kinds}, len(mistakes) == 0
}

// head reads the action and the point.
func (p *lineParser) head(r *Rule, words []word, columns map[string]int) {
	if w := words[0]; w.hasKey || w.isQuoted {
		p.fail(w.column, "a rule begins with an action: %s", nearest.Either(actionKinds()))
		return
	}
	r.Kind, columns["action"] = ActionKind(words[0].text), words[0].column
	if len(words) < 2 || words[1].hasKey || words[1].isQuoted {
		end := words[0].column + utf8.RuneCountInString(words[0].text)
		p.fail(end, "after the action comes a point, such as store/put or hook/*")
		return
	}
	r.Point, columns["point"] = words[1].text, words[1].column
}

// tail reads a part after the point.
func (p *lineParser) tail(r *Rule, w word, columns map[string]int) {
	if !w.hasKey {
		if w.text != optional || w.isQuoted {
			words := []string{optional}
			for _, k := range ruleKeys {
				words = append(words, k.name+"=")
			}
			p.fail(w.column, "after the point come KEY=VALUE and the word optional, not %q%s", w.text, suggest(w.text, words))
			return
		}
		r.Optional = true
		return
	}
	i := slices.IndexFunc(ruleKeys[:], func(k ruleKey) bool { return k.name == w.key })
	switch {
	case i < 0:
		p.fail(w.column, "unknown key %q%s", w.key, suggest(w.key, keysFor(w.text)))
		return
	case columns[w.key] > 0:
		p.fail(w.column, "%s= is there twice", w.key)
		return
	case w.text == "":
		p.fail(w.column, "%s= has no value", w.key)
		return
	}
	columns[w.key] = w.column
	if err := ruleKeys[i].set(r, w.text); err != nil {
		p.fail(w.column, "%s", err)
	}
}

// keysFor are the names of the keys that take a value, or of all if none does.
func keysFor(value string) []string {
	var all, names []string
	for _, k := range ruleKeys {
		all = append(all, k.name)
		if k.set(&Rule{}, value) == nil {
			names = append(names, k.name)
		}
	}
	if len(names) == 0 {
		return all
	}
	return names
}

// words cuts a line at its spaces, up to a comment.
func (p *lineParser) words(text string) []word {
	var words []word
	for at := 0; at < len(text); {
		if r, size := utf8.DecodeRuneInString(text[at:]); unicode.IsSpace(r) {
			at += size
			continue
		}
		if text[at] == '#' {
			break
		}
		column := 1 + utf8.RuneCountInString(text[:at])
		w, length, err := cutWord(text[at:])
		if err != nil {
			p.fail(column, "%s", err)
			return nil
		}
		w.column = column
		words = append(words, w)
		at += length
	}
	return words
}

// cutWord reads the word that a text begins with, and how long it is there.
func cutWord(text string) (word, int, error) {
	var w word
	end := strings.IndexFunc(text, unicode.IsSpace)
	if end < 0 {
		end = len(text)
	}
	value := 0
	if i := strings.IndexAny(text[:end], `="`); i >= 0 && text[i] == '=' {
		w.key, w.hasKey, value = text[:i], true, i+1
	}
	if !strings.HasPrefix(text[value:], `"`) {
		w.text = text[value:end]
		if i := strings.IndexAny(w.text, `"#`); i >= 0 {
			return w, 0, fmt.Errorf("a value with %q in it is quoted: %q", w.text[i], w.text)
		}
		return w, end, nil
	}
	literal, err := strconv.QuotedPrefix(text[value:])
	if err != nil {
		return w, 0, errors.New("a quoted value does not end, or is not quoted as in Go")
	}
	end = value + len(literal)
	if r, _ := utf8.DecodeRuneInString(text[end:]); end < len(text) && !unicode.IsSpace(r) {
		return w, 0, errors.New("there is something right after a quoted value")
	}
	w.isQuoted = true
	w.text, err = strconv.Unquote(literal)
	return w, end, err
}

// Plan is a list of rules, in text one a line; empty lines and # comments are skipped.
type Plan []Rule

// String is the plan as text, without comments.
func (p Plan) String() string {
	var text strings.Builder
	for _, r := range p {
		text.WriteString(r.String() + "\n")
	}
	return text.String()
}

// Validate says everything that is wrong with the plan.
func (p Plan) Validate(known Names) error {
	var errs []error
	for _, r := range p {
		errs = append(errs, r.Validate(known))
	}
	return errors.Join(errs...)
}

// ParsePlan reads a plan. The error joins a *SyntaxError, with that file, per mistake.
func ParsePlan(file, text string, known Names) (Plan, error) {
	p := &lineParser{file: file, known: known}
	var plan Plan
	for line := range strings.Lines(text) {
		p.number++
		if rule, ok := p.line(strings.TrimRight(line, "\r\n")); ok {
			plan = append(plan, rule.Rule)
		}
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return plan, nil
}

// ReadPlan reads the plan in a file.
func ReadPlan(file string, known Names) (Plan, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the plan of faults: %w", err)
	}
	return ParsePlan(file, string(text), known)
}
