package engine

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"snowglobe.test/scenarios/script"
)

// Check returns what is certainly wrong with a script, as far as that can be known before
// it runs. The error joins one for each mistake, each of which begins with its place.
func Check(s script.Script, commands []Command) error {
	lines, err := s.Commands()
	if err != nil {
		return err
	}
	return errors.Join(checkCommands(s, commands, lines), checkMutations(s, commands))
}

// Mistakes returns the mistakes that an error of Check joins, one by one.
func Mistakes(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return slices.DeleteFunc([]error{err}, func(err error) bool { return err == nil })
	}
	var mistakes []error
	for _, one := range joined.Unwrap() {
		mistakes = append(mistakes, Mistakes(one)...)
	}
	return mistakes
}

// checkMutations refuses a mutation if the mutated script can't run. Such a script always
// fails, so its failure would not show that the original script checks anything.
func checkMutations(s script.Script, commands []Command) error {
	mutations, err := s.Mutations()
	if err != nil {
		return err
	}
	for _, m := range mutations {
		mutated, err := s.Mutate(m)
		if err != nil {
			return err
		}
		if m.Answer != nil {
			continue
		}
		lines, err := mutated.Commands()
		if err == nil {
			err = checkCommands(mutated, commands, lines)
		}
		if err != nil {
			return fmt.Errorf("%s: mutation %q: it makes a script that can't be run: %w", s.File, m.Name,
				errors.New(strings.ReplaceAll(err.Error(), "\n", "; ")))
		}
	}
	return nil
}

// checking looks through the lines of a script.
type checking struct {
	script   script.Script
	commands []Command
	files    []script.File
	made     []func(file string) bool // whether a command so far may have made a file
	asserts  bool                     // a command so far can fail
}

// checkCommands finds what is wrong with commands and the files that they name.
func checkCommands(s script.Script, commands []Command, lines []script.Line) error {
	c := &checking{script: s, commands: AllCommands(commands), files: s.Files()}
	var errs []error
	var settings []string // the commands so far, as long as all of them have Command.First
	for i, line := range lines {
		command := line.Words[0]
		first := len(settings) == i && !slices.Contains(settings, command)
		errs = append(errs, c.line(line, first)...)
		if first && isFirst(c.commands, command) {
			settings = append(settings, command)
		}
	}
	if last := lines[len(lines)-1]; !c.asserts {
		errs = append(errs, fmt.Errorf("%s: the script ends here and has asserted nothing, so no server can fail it; "+
			"add what must be so, as with expect, assert or check", s.Place(last.Number)))
	}
	there := map[string]bool{}
	for _, file := range c.files {
		if there[file.Name] {
			errs = append(errs, fmt.Errorf("%s: the file %s is there twice", s.Place(file.Line), file.Name))
		}
		there[file.Name] = true
	}
	return errors.Join(errs...)
}

// isFirst reports whether a command has Command.First: only other such commands may come before it.
func isFirst(commands []Command, command string) bool {
	return slices.ContainsFunc(commands, func(c Command) bool { return c.First && c.Name == command })
}

// line returns what is wrong with a line, and its files.
func (c *checking) line(line script.Line, first bool) []error {
	place := c.script.Place(line.Number)
	short := func(condition string) bool { return strings.TrimPrefix(condition, "!") == shortName }
	if slices.ContainsFunc(line.Conditions, short) && !flag.Parsed() {
		return []error{fmt.Errorf("%s: the condition [%s] exists only under go test", place, shortName)}
	}
	call, err := findCall(c.commands, line.Words, line.Variable)
	switch {
	case err != nil:
		c.asserts = true // it may, once it is right
		return []error{fmt.Errorf("%s: %w", place, err)}
	case call.command.First && !first:
		return []error{fmt.Errorf("%s: %s is the first command of a script, since it decides from the start", place,
			call.command.Name)}
	case call.command.First && len(line.Conditions) > 0:
		return []error{fmt.Errorf("%s: %s has no condition, since it decides from the start", place, call.command.Name)}
	}
	c.asserts = c.asserts || call.command.Asserts || call.negated || line.Negated
	if call.command.Names != nil {
		if err := call.command.Names(call.args); err != nil {
			return []error{fmt.Errorf("%s: %s: %w", place, call.command.Name, err)}
		}
	}
	var errs []error
	for _, file := range call.files() {
		if !strings.Contains(file.Name, "$") {
			if err := c.look(place, file); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if least, _ := call.command.bounds(); call.command.Makes != nil && len(call.args) >= least {
		c.made = append(c.made, func(file string) bool { return call.command.Makes(call.args, file) })
	}
	return errs
}

// call is a command with its arguments. If another command wraps it, as eventually does,
// it is the innermost one.
type call struct {
	command Command
	flags   *pflag.FlagSet
	args    []string
	negated bool // by a "!" after the command that wraps it
}

// files are those that the command reads.
func (c call) files() []NamedFile {
	if least, _ := c.command.bounds(); c.command.Files == nil || len(c.args) < least {
		return nil
	}
	return c.command.Files(c.flags, c.args)
}

// findCall finds the command that words are, and checks its arguments as far as that does
// not need a server. With variables among them, little can be said.
func findCall(commands []Command, words []string, variable bool) (call, error) {
	name, args := words[0], words[1:]
	if strings.Contains(name, "$") {
		return call{command: Command{Asserts: true}}, nil // only the run knows which command it is
	}
	command, err := find(commands, name)
	if err != nil {
		return call{}, err
	}
	flags, _ := command.prepared()
	err = command.parse(flags, args)
	if err != nil && variable {
		return call{command: command, flags: flags}, nil
	}
	found := call{command: command, flags: flags, args: flags.Args()}
	if err == nil && !variable {
		err = command.checkArgs(flags, found.args)
	}
	if err != nil {
		return call{}, fmt.Errorf("%s: %w", name, &UsageError{err, command.Usage()})
	}
	if !command.Wraps || len(found.args) == 0 {
		return found, nil
	}
	return findWrapped(commands, found.args, variable)
}

func findWrapped(commands []Command, words []string, variable bool) (call, error) {
	negated := words[0] == script.Negation && len(words) > 1
	if negated {
		words = words[1:]
	}
	found, err := findCall(commands, words, variable)
	found.negated = found.negated || negated
	return found, err
}

// look finds the file that a command names, and checks it. place is that of the command.
// A file that is not of the script is taken from the disk if its path is absolute.
func (c *checking) look(place string, named NamedFile) error {
	name := path.Clean(named.Name)
	mayBeMade := func(made func(string) bool) bool { return made(name) }
	if isOutput(named.Name) || slices.ContainsFunc(c.made, mayBeMade) {
		return nil
	}
	for _, file := range c.files {
		if path.Clean(file.Name) != name {
			continue
		}
		if named.Check != nil {
			if err := named.Check(file.Text); err != nil {
				return c.script.Mistake(file, err)
			}
		}
		return nil
	}
	if filepath.IsAbs(named.Name) {
		if _, err := os.Stat(named.Name); err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		return nil
	}
	hint := fmt.Sprintf("it goes below the commands, after a line \"-- %s --\"", named.Name)
	if _, err := os.Stat(filepath.Join(filepath.Dir(c.script.File), name)); err == nil {
		hint = "the one in the folder of the script is not read; " + hint
	}
	return fmt.Errorf("%s: there is no file %s in the script; %s", place, named.Name, hint)
}

// HasFullTrace reports whether a script has a command that looks at all that clients see.
func HasFullTrace(s script.Script, commands []Command) bool {
	return slices.ContainsFunc(calls(s, commands), func(c call) bool { return c.command.FullTrace })
}

// LeftOut are the commands of a script that are left out of this build.
func LeftOut(s script.Script, commands []Command) []string {
	var names []string
	for _, c := range calls(s, commands) {
		if c.command.LeftOut && !slices.Contains(names, c.command.Name) {
			names = append(names, c.command.Name)
		}
	}
	return names
}

// RunsAlone reports whether no other script can run beside this one.
func RunsAlone(s script.Script, commands []Command) bool {
	return slices.ContainsFunc(calls(s, commands),
		func(c call) bool { return c.command.Alone != nil && c.command.Alone(c.flags, c.args) })
}

// calls are the commands of a script, as far as there is nothing wrong with them.
func calls(s script.Script, commands []Command) []call {
	lines, _ := s.Commands()
	all := AllCommands(commands)
	var found []call
	for _, line := range lines {
		if c, err := findCall(all, line.Words, line.Variable); err == nil {
			found = append(found, c)
		}
	}
	return found
}
