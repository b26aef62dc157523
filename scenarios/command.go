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
	name        string
	args        string // the synopsis
	least, most int    // bounds of the number of arguments, without the flags
	summary     string // what the command does: one line, in the imperative
	details     string // the rest: what it prints, what can go wrong
	example     string // one or more lines of a script
	noNegation  bool   // "!" before the command makes no sense
	unbounded   bool   // it has no time limit
	onServer    bool   // it fails if no API server is running
	wraps       bool   // its arguments, after the flags, are another command
	verbatim    bool   // its arguments are those of another program, flags too
	// static checks the arguments as far as that needs no server; nil for nothing.
	static func(args []string) error
	run    action // nil if the command has flags
	// prepare declares the flags and returns what runs the command once they are parsed.
	prepare func(flags *pflag.FlagSet) action
}

// anyNumber is the bound of a command that takes any number of arguments.
const anyNumber = math.MaxInt

// commands lists the verbs in the order of the reference page.
func commands() []command {
	return []command{
		seedCommand, faultsCommand, startCommand, shutdownCommand, restartCommand,
		holdCommand, freezeCommand, delayCommand, releaseCommand, stepCommand,
		failCommand, loseReplyCommand, dropCommand, duplicateCommand, cancelCommand,
		compactCommand, crashCommand, loseLeaderCommand, partitionCommand,
		liftCommand, rulesCommand, heldCommand,
		advanceCommand, settleCommand, orderCommand, eventuallyCommand, alwaysCommand, repeatCommand,
		readyCommand, awaitCommand, signalCommand,
		applyCommand, deleteCommand, getCommand, listCommand, kubectlCommand,
		logsCommand, runCommand, forwardCommand,
		requestCommand, expectCommand, neverCommand, checkCommand, storedCommand,
		assertCommand, matchCommand,
		watchCommand, informerCommand, controllerCommand, electCommand, controllerManagerCommand, schedulerCommand, nodesCommand, eventCommand, eventsCommand, cachedCommand, unwatchCommand,
		asCommand, viaCommand, acceptCommand, tokenCommand, whoamiCommand,
		fakeCommand, answerCommand, openCommand, cutCommand, healCommand, issueCommand, rotateCommand, callsCommand,
		hooksCommand, readyzCommand, noteCommand, timelineCommand, breakCommand, helpCommand,
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

// parse takes the flags out of the arguments.
func (c command) parse(flags *pflag.FlagSet, args []string) error {
	if c.verbatim {
		args = append([]string{"--"}, args...)
	}
	return flags.Parse(args)
}

func (c command) invoke(s *session, args []string) error {
	flags := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	run := c.run
	if c.prepare != nil {
		run = c.prepare(flags)
	}
	if err := c.parse(flags, args); err != nil {
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
