package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest/controllers"
)

// programEnd is how a command ends a program that it started: --stop or --crash.
type programEnd struct{ stop, crash bool }

func endFlags(flags *pflag.FlagSet) *programEnd {
	e := &programEnd{}
	flags.BoolVar(&e.stop, "stop", false, "")
	flags.BoolVar(&e.crash, "crash", false, "")
	return e
}

// asked reports whether the program is to end, with an error if it is also to start.
func (e *programEnd) asked(args []string) (bool, error) {
	switch {
	case e.stop && e.crash:
		return false, fmt.Errorf("%w: it can have one of --stop and --crash", errUsage)
	case (e.stop || e.crash) && len(args) > 0:
		return false, fmt.Errorf("%w: %q; what ends, ends as a whole", errUsage, args[0])
	}
	return e.stop || e.crash, nil
}

// startProgram runs a program of upstream's beside the API servers, until they stop.
func (s *session) startProgram(name string, launch func() (*controllers.Program, error)) error {
	if s.programs[name] != nil {
		return fmt.Errorf("there is a %s already; end it with: %s --stop", name, name)
	}
	program, err := launch()
	if err != nil {
		return err
	}
	s.programs[name] = program
	return nil
}

// endProgram stops a program, or lets it die at once.
func (s *session) endProgram(ctx context.Context, name string, how programEnd) error {
	program := s.programs[name]
	if program == nil {
		return fmt.Errorf("there is no %s; start one with: %s", name, name)
	}
	delete(s.programs, name)
	if how.crash {
		return errors.Join(program.Err(), program.Crash(ctx))
	}
	return errors.Join(program.Err(), program.Stop(ctx))
}

// endPrograms stops all that runs beside the API servers.
func (s *session) endPrograms(ctx context.Context) error {
	var errs []error
	for _, name := range []string{controllerManagerName, schedulerName} {
		if s.programs[name] != nil {
			errs = append(errs, s.endProgram(ctx, name, programEnd{stop: true}))
		}
	}
	return errors.Join(append(errs, s.endNodes())...)
}

// withoutFlags leaves out the flags among arguments, which are for a command's own check of
// names before anything starts.
func withoutFlags(args []string) []string {
	var names []string
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			names = append(names, arg)
		}
	}
	return names
}
