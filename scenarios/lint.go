package scenarios

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/pflag"

	"snowglobe.test/internal/nearest"
)

// engineCommands are those of the script engine itself.
var engineCommands = []string{
	"cd", "chmod", "cmp", "cmpenv", "cp", "env", "exec", "exists", "grep", "kill", "mkdir", "mv", "rm", "skip",
	"stderr", "stdin", "stdout", "stop", "symlink", "ttyin", "ttyout", "unix2dos", "unquote", "wait",
}

// scriptLine is a line of a script that is a command.
type scriptLine struct {
	number     int
	conditions []string // such as "!virtual"
	words      []string // the command and its arguments, variables as they are written
	variable   bool     // a word has a variable in it
}

// scriptLines reads the lines of commands. The error joins one for each that is wrong.
func (s Script) scriptLines() ([]scriptLine, error) {
	var found []scriptLine
	var errs []error
	for i, text := range s.lines() {
		words, variable, err := splitWords(text, nil)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", s.File, i+1, err))
			continue
		}
		line := scriptLine{number: i + 1, variable: variable}
		for len(words) > 0 && strings.HasPrefix(words[0], "[") && strings.HasSuffix(words[0], "]") {
			line.conditions = append(line.conditions, strings.Trim(words[0], "[]"))
			words = words[1:]
		}
		if len(words) > 0 && (words[0] == "!" || words[0] == "?") {
			words = words[1:]
		}
		if len(words) > 0 {
			line.words = words
			found = append(found, line)
		}
	}
	return found, errors.Join(errs...)
}

var errQuote = errors.New("a quoted argument does not end")

// splitWords cuts a line into words, as the script engine does: 'quotes' keep words
// together, two of them in quotes are one, and # begins a comment. What is not in quotes
// is expanded; a nil expand leaves it as it is.
func splitWords(line string, expand func(string) string) (words []string, variable bool, err error) {
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

// validate finds what can be known to be wrong before the script runs.
func (s Script) validate() error {
	lines, err := s.scriptLines()
	if err != nil {
		return err
	}
	verbs := commands()
	var errs []error
	for i, line := range lines {
		err := checkLine(verbs, line)
		if line.words[0] == seedName && i > 0 {
			err = errSeedLate
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", s.File, line.number, err))
		}
	}
	if _, err := s.Mutations(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func checkLine(verbs []command, line scriptLine) error {
	short := func(condition string) bool { return strings.TrimPrefix(condition, "!") == "short" }
	switch {
	case len(line.words) == 1 && line.words[0] == "stop":
		return errors.New("stop ends the script here; write shutdown to stop the API server, or stop with a reason to end the script")
	case slices.ContainsFunc(line.conditions, short) && !flag.Parsed():
		return errors.New("the condition [short] exists only under go test")
	}
	return checkWords(verbs, line.words, line.variable)
}

// checkWords checks a command and its arguments as far as that does not need a server.
func checkWords(verbs []command, words []string, variable bool) error {
	name, args := words[0], words[1:]
	i := slices.IndexFunc(verbs, func(c command) bool { return c.name == name })
	switch {
	case i < 0 && slices.Contains(engineCommands, name), strings.Contains(name, "$"):
		return nil
	case i < 0:
		known := slices.Clone(engineCommands)
		for _, c := range verbs {
			known = append(known, c.name)
		}
		return fmt.Errorf("unknown command %q%s", name, nearest.DidYouMean(name, known))
	case variable:
		return nil // what the arguments are is not known yet
	}
	return verbs[i].check(verbs, args)
}

// check checks the arguments of a command.
func (c command) check(verbs []command, args []string) error {
	flags := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	if c.prepare != nil {
		c.prepare(flags)
	}
	err := c.parse(flags, args)
	if count := flags.NArg(); err == nil && (count < c.least || count > c.most) {
		err = errUsage
	}
	if err == nil && c.wraps {
		wrapped := flags.Args()
		if wrapped[0] == negation && len(wrapped) > 1 {
			wrapped = wrapped[1:]
		}
		return checkWords(verbs, wrapped, false)
	}
	if err == nil && c.static != nil {
		err = c.static(flags.Args())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, usageError{err.Error(), c.usage()})
	}
	return nil
}

// checks reports whether the script has a command that looks at all that clients see.
func (s Script) checks() bool {
	lines, _ := s.scriptLines() // mistakes have been reported
	return slices.ContainsFunc(lines, func(l scriptLine) bool { return slices.Contains(l.words, checkName) })
}

// Lint returns what is wrong with a script, and what may be wrong. Each problem is
// "FILE:LINE: what", or "FILE: what".
func (s Script) Lint() []string {
	var problems []string
	say := func(format string, args ...any) { problems = append(problems, s.File+fmt.Sprintf(format, args...)) }
	if err := s.validate(); err != nil {
		problems = append(problems, strings.Split(err.Error(), "\n")...)
	}
	if s.Title() == "" {
		say(":1: the script does not begin with a comment; say there what it shows")
	}
	if mutations, err := s.Mutations(); err == nil && len(mutations) == 0 {
		say(": no file %s lists what must make the script fail, so nothing shows that it can; see Mutations in docs/reference/scripts.md", mutationsFile)
	}
	files := map[string]bool{}
	for _, file := range txtar.Parse(s.text).Files {
		if files[file.Name] {
			say(": the file %s is there twice", file.Name)
		}
		files[file.Name] = true
	}
	problems = append(problems, s.missingFiles(files)...)
	commands := strings.Join(s.lines(), "\n")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != mutationsFile && !strings.Contains(commands, name) {
			say(": no command names the file %s", name)
		}
	}
	return problems
}

// fileName is what looks like the name of a file, and not like a path of a request.
var fileName = regexp.MustCompile(`^[\w-]+\.(ya?ml|json|txt)$`)

// missingFiles names the files that commands name and the script lacks.
func (s Script) missingFiles(files map[string]bool) []string {
	var problems []string
	lines, _ := s.scriptLines() // mistakes have been reported
	for _, l := range lines {
		for _, word := range l.words[1:] {
			if fileName.MatchString(word) && !files[word] {
				problems = append(problems, fmt.Sprintf("%s:%d: there is no file %s in the script; it goes below the commands, after a line \"-- %s --\"", s.File, l.number, word, word))
			}
		}
	}
	return problems
}

// Validate returns what is certainly wrong with the script, as far as that can be known
// before it runs; Run would refuse it. The error joins one error for each wrong line.
func (s Script) Validate() error { return s.validate() }
