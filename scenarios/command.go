package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// patience is how long a command may take, by the script's clock.
const patience = time.Minute

type action func(ctx context.Context, s *session, args []string) error

// command is a verb of the scripts.
type command struct {
	name string
	// args is the synopsis of the arguments.
	args string
	// least and most bound the number of arguments, without the flags.
	least, most int
	// summary says in one line what the command does, in the imperative.
	summary string
	// details says the rest: what it prints, what can go wrong.
	details string
	// example is one or more lines of a script.
	example string
	// noNegation means that "!" before the command makes no sense.
	noNegation bool
	// unbounded means that the command has no time limit.
	unbounded bool
	// onServer means that the command fails if no API server is running.
	onServer bool
	// run runs a command without flags.
	run action
	// prepare declares the flags of a command and returns what runs it once they
	// are parsed.
	prepare func(flags *pflag.FlagSet) action
}

// anyNumber is the bound of a command that takes any number of arguments.
const anyNumber = math.MaxInt

// commands lists the verbs in the order of the reference page.
func commands() []command {
	return []command{
		startCommand, shutdownCommand, restartCommand,
		holdCommand, releaseCommand, advanceCommand,
		readyCommand, awaitCommand, crashCommand,
		applyCommand, deleteCommand, getCommand, listCommand,
		requestCommand, expectCommand, neverCommand,
		asCommand, tokenCommand, whoamiCommand,
		hooksCommand, readyzCommand, noteCommand, timelineCommand,
	}
}

// usageError is a mistake in the script itself, which fails even after "!".
type usageError struct {
	reason string
	usage  string
}

// Error implements error.
func (e usageError) Error() string { return fmt.Sprintf("%s (usage: %s)", e.reason, e.usage) }

// errUsage is the error for arguments that do not match a command's synopsis.
var errUsage = errors.New("wrong arguments")

func (c command) usage() string { return strings.TrimSpace(c.name + " " + c.args) }

// invoke parses the arguments and runs the command.
func (c command) invoke(s *session, args []string) error {
	flags := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	run := c.run
	if c.prepare != nil {
		run = c.prepare(flags)
	}
	if err := flags.Parse(args); err != nil {
		return usageError{err.Error(), c.usage()}
	}
	if count := flags.NArg(); count < c.least || count > c.most {
		return usageError{errUsage.Error(), c.usage()}
	}
	if c.onServer && s.server == nil {
		return errNoServer
	}
	ctx, cancel := s.context(c)
	defer cancel()
	err := run(ctx, s, flags.Args())
	if errors.Is(err, errUsage) {
		return usageError{err.Error(), c.usage()}
	}
	return err
}
