package scenarios

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"snowglobe.test/envtest/virtualtime"
)

// Prompt is where a user is asked for commands.
type Prompt struct {
	In  io.Reader
	Out io.Writer
}

// breakName is the name of the command that asks for commands, and the others are what
// is said at its prompt besides them.
const (
	breakName = "break"

	goOn = "continue"
	quit = "quit"
)

var breakCommand = command{
	name:    breakName,
	args:    "[WHY]...",
	most:    anyNumber,
	summary: "stop here and ask for commands, at a prompt",
	details: `The prompt knows the commands of scripts, but not those of the script engine itself, and
prints what they print; a command that fails does not end the script. Virtual time
stands still while nothing is typed. "` + goOn + `" or the end of the input continues the
script, and "` + quit + `" ends it. It fails where there is nobody to ask, as in go test.`,
	example:    "break 'look at the cache'",
	noNegation: true,
	unbounded:  true,
	run: func(_ context.Context, s *session, args []string) error {
		if s.opts.Prompt == nil {
			return errors.New("there is nobody to ask for commands; run the script in a terminal, with snowglobe run, and without --seed or with --sim=false")
		}
		return s.converse(strings.Join(args, " "))
	},
}

var errQuit = errors.New("ended at the prompt")

// converse runs commands that a person types, until told to go on.
func (s *session) converse(why string) error {
	prompt := s.opts.Prompt
	if s.typed == nil {
		s.typed = bufio.NewScanner(prompt.In)
	}
	number, _, _ := currentLine(s.ts)
	fmt.Fprintf(prompt.Out, "%s:%d: %s\nType commands as in a script; \"help\" lists them, \"%s\" goes on, \"%s\" ends the script.\n",
		s.script.File, number, strings.TrimSpace("break "+why), goOn, quit)
	for {
		fmt.Fprint(prompt.Out, "> ")
		more := false
		virtualtime.Paused(func() { more = s.typed.Scan() })
		line := ""
		if more {
			line = strings.TrimSpace(s.typed.Text())
		}
		switch {
		case s.outer.Err() != nil:
			return errInterrupted
		case !more || line == goOn:
			fmt.Fprintln(prompt.Out)
			return s.typed.Err()
		case line == quit:
			return errQuit
		}
		if err := s.typeCommand(line); err != nil {
			fmt.Fprintln(prompt.Out, err)
		}
	}
}

// typeCommand runs a command that a person has typed, and prints what it prints.
func (s *session) typeCommand(line string) error {
	words, _, err := splitWords(line, func(text string) string { return os.Expand(text, s.ts.Getenv) })
	if err != nil || len(words) == 0 {
		return err
	}
	negated := words[0] == "!"
	if negated {
		words = words[1:]
	}
	if len(words) == 0 {
		return errUsage
	}
	if err := checkWords(s.verbs, words, false); err != nil {
		return err
	}
	i := slices.IndexFunc(s.verbs, func(c command) bool { return c.name == words[0] })
	if i < 0 || s.verbs[i].name == breakName {
		return fmt.Errorf("%s has no meaning at a prompt", words[0])
	}
	s.story.addLine(commandLine, line)
	s.out.Reset()
	err = s.verbs[i].invoke(s, words[1:])
	_, _ = s.out.WriteTo(s.opts.Prompt.Out) // nobody can be told that nobody can be told
	if negated && err == nil {
		return fmt.Errorf("%s: succeeded, and was expected to fail", words[0])
	}
	return err
}
