package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"snowglobe.test/internal/nearest"
)

// Patience is how long a command may take, by the script's clock.
const Patience = time.Minute

// Action does what a command says.
type Action func(ctx context.Context, args []string) error

// Command is a command of the scripts. Only Name and one of Run and Prepare are required. In
// the packages of the commands, each is a method by its name, which its Summary describes.
type Command struct {
	Name     string
	Args     string // the synopsis, which says how many arguments there may be
	Summary  string // what it does: one line, in the imperative
	Details  string // the rest: what it prints, what can go wrong
	Example  string // one or more lines of a script
	Formerly string // its name before 0.1.0, if it had another

	NoNegation bool // "!" before it makes no sense
	Unbounded  bool // it has no time limit
	Tells      bool // it puts its own line into the story
	Wraps      bool // its arguments, after the flags, are another command
	Verbatim   bool // its arguments are those of another program, flags too
	Asserts    bool // it fails if a server does not do what the script expects
	First      bool // it decides from the start, and is at the beginning of the script
	FullTrace  bool // it looks at all that clients see and that the store writes
	LeftOut    bool // it is left out of this build

	// Needs says why it can't run now; nil if it always can.
	Needs func() error
	// Begins reports whether it begins a new control plane; nil if it never does.
	Begins func(args []string) bool
	// Alone reports whether no other script can run beside one with it; nil if any can.
	Alone func(flags *pflag.FlagSet, args []string) bool
	// Static checks flags and arguments as far as that needs no server, before the script
	// runs, and again when all variables are known, so that what runs need not; nil for nothing.
	Static func(flags *pflag.FlagSet, args []string) error
	// Names checks what arguments name, even if others have variables; nil for nothing.
	Names func(args []string) error
	// Files are the files of the script that it reads; nil for none.
	Files func(flags *pflag.FlagSet, args []string) []NamedFile
	// Makes reports whether it may make a file of that name; nil if it makes none.
	Makes func(args []string, file string) bool

	Run Action // nil if it has flags
	// Prepare declares the flags and returns what runs the command once they are parsed.
	Prepare func(flags *pflag.FlagSet) Action
}

// NamedFile is a file that a command reads.
type NamedFile struct {
	Name string
	// Check says what is wrong with the text of the file; nil if any will do.
	Check func(text string) error
}

// NamedFiles are files with one check.
func NamedFiles(check func(text string) error, names ...string) []NamedFile {
	var files []NamedFile
	for _, name := range names {
		files = append(files, NamedFile{name, check})
	}
	return files
}

// Usage is the synopsis with the name.
func (c Command) Usage() string { return strings.TrimSpace(c.Name + " " + c.Args) }

// Sentence is the summary with a capital letter.
func (c Command) Sentence() string { return strings.ToUpper(c.Summary[:1]) + c.Summary[1:] }

// find finds a command by its name.
func find(commands []Command, name string) (Command, error) {
	i := slices.IndexFunc(commands, func(c Command) bool { return c.Name == name })
	if i >= 0 {
		return commands[i], nil
	}
	var known []string
	for _, c := range commands {
		if c.Formerly == name && name != "" {
			return Command{}, fmt.Errorf("the command %q is called %q now", name, c.Name)
		}
		known = append(known, c.Name)
	}
	return Command{}, fmt.Errorf("unknown command %q%s", name, nearest.DidYouMean(name, known))
}

// prepared returns the flags of the command, and what runs it once they are parsed.
func (c Command) prepared() (*pflag.FlagSet, Action) {
	flags := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.SetInterspersed(!c.Wraps) // what comes after the name of another command is that one's
	if c.Prepare == nil {
		return flags, c.Run
	}
	return flags, c.Prepare(flags)
}

// parse takes the flags out of the arguments.
func (c Command) parse(flags *pflag.FlagSet, args []string) error {
	if c.Verbatim {
		args = append([]string{"--"}, args...)
	}
	return flags.Parse(args)
}

// What is in a synopsis besides arguments that are required.
var (
	synopsisFlag     = regexp.MustCompile(`\[--?\w[^\[\]]*(\[[^\]]*\])?\](\.\.\.)?|--\w+ [A-Z]+`)
	synopsisOptional = regexp.MustCompile(`\[[^\[\]]*\](\.\.\.)?`)
)

// bounds are how many arguments the synopsis has, without the flags.
func (c Command) bounds() (least, most int) {
	if c.Verbatim {
		return 0, math.MaxInt
	}
	least = math.MaxInt
	for form := range strings.SplitSeq(synopsisFlag.ReplaceAllString(c.Args, ""), " | ") {
		most = max(most, len(strings.Fields(form)))
		if strings.Contains(form, "...") {
			most = math.MaxInt
		}
		form = synopsisOptional.ReplaceAllString(form, "")
		least = min(least, len(strings.Fields(synopsisOptional.ReplaceAllString(form, "")))) // what was around it
	}
	return least, most
}

// checkArgs refuses too few or too many arguments, and what Static does.
func (c Command) checkArgs(flags *pflag.FlagSet, args []string) error {
	if least, most := c.bounds(); len(args) < least || len(args) > most {
		return ErrUsage
	}
	if c.Static == nil {
		return nil
	}
	return c.Static(flags, args)
}

// invoke runs the command.
func (c Command) invoke(r *Run, args []string) error {
	flags, run := c.prepared()
	if err := c.parse(flags, args); err != nil {
		return &UsageError{err, c.Usage()}
	}
	if err := c.checkArgs(flags, flags.Args()); err != nil {
		return &UsageError{err, c.Usage()}
	}
	if c.Needs != nil {
		if err := c.Needs(); err != nil {
			return err
		}
	}
	ctx, cancel := r.context(c)
	defer cancel()
	err := run(ctx, flags.Args())
	if errors.Is(err, ErrUsage) {
		return &UsageError{err, c.Usage()}
	}
	return err
}

// negate is the outcome of a command that returned err and is expected to fail: nil if it
// has. A mistake in the script, or its end, is no failure of that kind.
func (c Command) negate(err error) error {
	switch {
	case isMisuse(err), errors.Is(err, ErrInterrupted):
		return err
	case c.NoNegation:
		return errors.New("it cannot be expected to fail; leave out the !")
	case err == nil:
		return errSucceeded
	}
	return nil
}
