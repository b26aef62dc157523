// Package programs owns the commands about what runs beside the API servers and asks them for
// itself: upstream's controllers and scheduler, nodes, a script's own controllers, and
// candidates for election. It stops upstream's programs and the nodes before the servers.
package programs

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest/controllers"
	"snowglobe.test/envtest/nodes"
	"snowglobe.test/scenarios/commands/clients"
	"snowglobe.test/scenarios/commands/servers"
	"snowglobe.test/scenarios/engine"
)

// Programs are those of one run.
type Programs struct {
	run     *engine.Run
	servers *servers.Servers
	clients *clients.Clients

	byName map[string]*controllers.Program // upstream's
	nodes  *nodes.Nodes                    // nil for none
	pods   *podTable                       // what the script says of their Pods
}

// New returns the programs beside some servers, of which none runs.
func New(run *engine.Run, beside *servers.Servers, as *clients.Clients) *Programs {
	p := &Programs{run: run, servers: beside, clients: as, byName: map[string]*controllers.Program{}}
	beside.OnStop(p.endPrograms)
	return p
}

// checkEnd refuses to end a program in two ways, or to end and start it.
func checkEnd(flags *pflag.FlagSet, args []string) error {
	stop, stopErr := flags.GetBool("stop")
	crash, crashErr := flags.GetBool("crash")
	switch {
	case stop && crash:
		return fmt.Errorf("%w: it can have one of --stop and --crash", engine.ErrUsage)
	case (stop || crash) && len(args) > 0:
		return fmt.Errorf("%w: %q; what ends, ends as a whole", engine.ErrUsage, args[0])
	}
	return errors.Join(stopErr, crashErr)
}

// launcher starts a program of upstream's beside the API servers.
type launcher func(ctx context.Context, args []string) (*controllers.Program, error)

// program prepares the command that runs a program until the API servers stop, or ends it.
func (p *Programs) program(name string, launch launcher) func(*pflag.FlagSet) engine.Action {
	return func(flags *pflag.FlagSet) engine.Action {
		stop := flags.Bool("stop", false, "")
		crash := flags.Bool("crash", false, "")
		return func(ctx context.Context, args []string) error {
			switch {
			case *stop, *crash:
				return p.endProgram(ctx, name, *crash)
			case p.byName[name] != nil:
				return fmt.Errorf("there is a %s already; end it with: %s --stop", name, name)
			}
			program, err := launch(ctx, args)
			if err == nil {
				p.byName[name] = program
			}
			return err
		}
	}
}

// endProgram stops a program, or lets it die at once.
func (p *Programs) endProgram(ctx context.Context, name string, crash bool) error {
	program := p.byName[name]
	if program == nil {
		return fmt.Errorf("there is no %s; start one with: %s", name, name)
	}
	delete(p.byName, name)
	if crash {
		return errors.Join(program.Err(), program.Crash(ctx))
	}
	return errors.Join(program.Err(), program.Stop(ctx))
}

// endPrograms stops all that runs beside the API servers.
func (p *Programs) endPrograms(ctx context.Context) error {
	var errs []error
	for _, name := range []string{controllerManagerName, schedulerName} {
		if p.byName[name] != nil {
			errs = append(errs, p.endProgram(ctx, name, false))
		}
	}
	return errors.Join(append(errs, p.endNodes())...)
}
