package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/scenarios/script"
)

// Prompt is where a user is asked for commands.
type Prompt struct {
	In  io.Reader
	Out io.Writer
}

// breakName is the name of the break command. goOn and quit are what its prompt
// understands besides commands.
const (
	breakName = "break"

	goOn = "continue"
	quit = "quit"
)

// Break is the command that asks a person for commands.
func (r *Run) Break() Command {
	return Command{
		Name:    breakName,
		Args:    "[WHY]...",
		Asserts: true,
		Summary: "stop here and ask for commands, at a prompt",
		Details: `The prompt knows the commands of scripts, but not those of the script engine itself, and
prints what they print; a command that fails does not end the script. Virtual time
stands still while nothing is typed. "` + goOn + `" or the end of the input continues the
script, and "` + quit + `" ends it. It fails where there is no user to ask, as in go test.`,
		Example:    "break 'look at the cache'",
		NoNegation: true,
		Alone:      func(*pflag.FlagSet, []string) bool { return true },
		Unbounded:  true,
		Run: func(_ context.Context, args []string) error {
			if r.opts.Prompt == nil {
				return errors.New("there is no user to ask for commands; run the script in a terminal, with snowglobe run, and without --seed or with --sim=false")
			}
			return r.converse(strings.Join(args, " "))
		},
	}
}

var errQuit = errors.New("ended at the prompt")

// converse runs commands that a person types, until told to go on.
func (r *Run) converse(why string) error {
	prompt := r.opts.Prompt
	fmt.Fprintf(prompt.Out, "%s: %s\nType commands as in a script; \"help\" lists them, \"%s\" goes on, \"%s\" ends the script.\n",
		r.Here(), strings.TrimSpace("break "+why), goOn, quit)
	for {
		fmt.Fprint(prompt.Out, "> ")
		var typed typedLine
		var err error
		virtualtime.Paused(func() { typed, err = r.opts.Typed.line() })
		line := strings.TrimSpace(typed.text)
		switch {
		case err != nil:
			return err
		case typed.ended || line == goOn:
			fmt.Fprintln(prompt.Out)
			return typed.err
		case line == quit:
			return errQuit
		}
		if err := r.typeCommand(line); err != nil {
			fmt.Fprintln(prompt.Out, err)
		}
	}
}

// typeCommand runs a command that a person has typed, and prints what it prints.
func (r *Run) typeCommand(line string) error {
	words, _, err := script.SplitWords(line, r.Expand)
	if err != nil || len(words) == 0 {
		return err
	}
	negated := words[0] == script.Negation
	if negated {
		words = words[1:]
	}
	if len(words) == 0 {
		return ErrUsage
	}
	if _, err := findCall(AllCommands(r.commands), words, false); err != nil {
		return err
	}
	command, err := find(r.commands, words[0])
	if err != nil || command.Name == breakName {
		return fmt.Errorf("%s has no meaning at a prompt", words[0])
	}
	r.Story.Command(line)
	r.Stdout.Reset()
	err = command.invoke(r, words[1:])
	_, _ = r.Stdout.WriteTo(r.opts.Prompt.Out) // if the prompt can't be written to, nor can the error
	if negated {
		if err = command.negate(err); err != nil {
			return fmt.Errorf("%s: %w", command.Name, err)
		}
	}
	return err
}
