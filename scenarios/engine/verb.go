package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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

// Verb is a command of the scripts. Only Name and one of Run and Prepare are required. In
// the packages of the verbs, each is a method by its name, which its Summary describes.
type Verb struct {
	Name        string
	Args        string // the synopsis
	Least, Most int    // bounds of the number of arguments, without the flags
	Summary     string // what it does: one line, in the imperative
	Details     string // the rest: what it prints, what can go wrong
	Example     string // one or more lines of a script

	NoNegation bool // "!" before it makes no sense
	Unbounded  bool // it has no time limit
	Tells      bool // it puts its own line into the story
	Wraps      bool // its arguments, after the flags, are another command
	Verbatim   bool // its arguments are those of another program, flags too
	Asserts    bool // it fails if a server does not do what the script expects
	First      bool // it decides from the start, and is at the beginning of the script
	FullTrace  bool // it looks at all that clients see and that the store writes

	// Needs says why it can't run now; nil if it always can.
	Needs func() error
	// Begins reports whether it begins a new control plane; nil if it never does.
	Begins func(args []string) bool
	// Alone reports whether no other script can run beside one with it; nil if any can.
	Alone func(flags *pflag.FlagSet, args []string) bool
	// Static checks flags and arguments as far as that needs no server, before the script
	// runs, and again when all variables are known; nil for nothing.
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

// AnyNumber is the bound of a command that takes any number of arguments.
const AnyNumber = math.MaxInt

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
func (v Verb) Usage() string { return strings.TrimSpace(v.Name + " " + v.Args) }

// Sentence is the summary with a capital letter.
func (v Verb) Sentence() string { return strings.ToUpper(v.Summary[:1]) + v.Summary[1:] }

// find finds a verb by its name.
func find(verbs []Verb, name string) (Verb, error) {
	i := slices.IndexFunc(verbs, func(v Verb) bool { return v.Name == name })
	if i >= 0 {
		return verbs[i], nil
	}
	var known []string
	for _, v := range verbs {
		known = append(known, v.Name)
	}
	return Verb{}, fmt.Errorf("unknown command %q%s", name, nearest.DidYouMean(name, known))
}

// prepared returns the flags of the verb, and what runs it once they are parsed.
func (v Verb) prepared() (*pflag.FlagSet, Action) {
	flags := pflag.NewFlagSet(v.Name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.SetInterspersed(!v.Wraps) // what comes after the name of another verb is that one's
	if v.Prepare == nil {
		return flags, v.Run
	}
	return flags, v.Prepare(flags)
}

// parse takes the flags out of the arguments.
func (v Verb) parse(flags *pflag.FlagSet, args []string) error {
	if v.Verbatim {
		args = append([]string{"--"}, args...)
	}
	return flags.Parse(args)
}

// checkArgs refuses too few or too many arguments, and what Static does.
func (v Verb) checkArgs(flags *pflag.FlagSet, args []string) error {
	if len(args) < v.Least || len(args) > v.Most {
		return ErrUsage
	}
	if v.Static == nil {
		return nil
	}
	return v.Static(flags, args)
}

// invoke runs the verb.
func (v Verb) invoke(r *Run, args []string) error {
	flags, run := v.prepared()
	if err := v.parse(flags, args); err != nil {
		return &UsageError{err, v.Usage()}
	}
	if err := v.checkArgs(flags, flags.Args()); err != nil {
		return &UsageError{err, v.Usage()}
	}
	if v.Needs != nil {
		if err := v.Needs(); err != nil {
			return err
		}
	}
	ctx, cancel := r.context(v)
	defer cancel()
	err := run(ctx, flags.Args())
	if errors.Is(err, ErrUsage) {
		return &UsageError{err, v.Usage()}
	}
	return err
}

// negate is the outcome of a verb that returned err and is expected to fail: nil if it
// has. A mistake in the script, or its end, is no failure of that kind.
func (v Verb) negate(err error) error {
	var misuse *UsageError
	switch {
	case errors.As(err, &misuse), errors.Is(err, ErrInterrupted):
		return err
	case v.NoNegation:
		return errors.New("it cannot be expected to fail; leave out the !")
	case err == nil:
		return errSucceeded
	}
	return nil
}
