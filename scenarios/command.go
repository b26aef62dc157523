package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// patience is how long a command may take, by the script's clock.
const patience = time.Minute

// command is a verb of the scripts. Each has a file of its own.
type command struct {
	name string
	// args is the synopsis of the arguments.
	args string
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
	// prepare declares the flags and returns the function that runs the command
	// once they are parsed.
	prepare func(flags *pflag.FlagSet) func(ctx context.Context, s *session, args []string) error
}

// commands lists the verbs in the order of the reference page.
func commands() []command {
	return []command{
		startCommand(), shutdownCommand(), restartCommand(),
		holdCommand(), releaseCommand(), advanceCommand(),
		readyCommand(), awaitCommand(), crashCommand(),
		applyCommand(), deleteCommand(), getCommand(), listCommand(),
		requestCommand(), expectCommand(), neverCommand(),
		asCommand(), tokenCommand(), whoamiCommand(),
		hooksCommand(), readyzCommand(), noteCommand(), timelineCommand(),
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

// usage is the synopsis of the command.
func (c command) usage() string { return strings.TrimSpace(c.name + " " + c.args) }

// invoke parses the arguments and runs the command.
func (c command) invoke(s *session, args []string) error {
	flags := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	run := c.prepare(flags)
	if err := flags.Parse(args); err != nil {
		return usageError{err.Error(), c.usage()}
	}
	ctx, cancel := s.context(c)
	defer cancel()
	err := run(ctx, s, flags.Args())
	if errors.Is(err, errUsage) {
		return usageError{err.Error(), c.usage()}
	}
	return err
}

// plain returns the prepare function of a command without flags.
func plain(run func(ctx context.Context, s *session, args []string) error) func(*pflag.FlagSet) func(context.Context, *session, []string) error {
	return func(*pflag.FlagSet) func(context.Context, *session, []string) error { return run }
}
