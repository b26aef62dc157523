package scenarios

import (
	"context"
	"errors"
	"io"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/scenarios/commands/checks"
	"snowglobe.test/scenarios/commands/clients"
	"snowglobe.test/scenarios/commands/fakes"
	"snowglobe.test/scenarios/commands/programs"
	"snowglobe.test/scenarios/commands/servers"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

// commandGroups are the commands of one run, in groups each of which has its own state.
type commandGroups struct {
	run      *engine.Run
	servers  *servers.Servers
	clients  *clients.Clients
	fakes    *fakes.Fakes
	programs *programs.Programs
	checks   *checks.Checks
}

func newCommandGroups(run *engine.Run, opts Options) *commandGroups {
	g := &commandGroups{run: run}
	g.servers = servers.New(run, servers.Config{
		Seed: opts.Seed, Search: opts.Search, Faults: opts.Faults,
		Options: opts.Servers, Store: opts.Store, Branch: opts.Branch,
	})
	g.clients = clients.New(run, g.servers)
	g.fakes = fakes.New(run, g.servers)
	g.programs = programs.New(run, g.servers, g.clients)
	g.checks = checks.New(run, g.clients)
	g.servers.OnOptions(func() []envtest.Option {
		if opts.FullTrace || engine.HasFullTrace(run.Script, g.commands()) {
			return []envtest.Option{envtest.WithFullTrace()}
		}
		return nil
	})
	return g
}

// commands are all commands of scripts, in the order of the reference page.
func (g *commandGroups) commands() []engine.Command {
	run, servers, clients, fakes, programs, checks := g.run, g.servers, g.clients, g.fakes, g.programs, g.checks
	return []engine.Command{
		servers.Seed(), servers.Clock(), servers.Faults(), servers.Start(), servers.Reseed(),
		servers.Shutdown(), servers.Restart(),
		servers.Rule(fault.Hold), servers.Rule(fault.Freeze), servers.Rule(fault.Delay), servers.Release(), servers.Step(),
		servers.Rule(fault.Fail), servers.Rule(fault.LoseReply), servers.Rule(fault.Drop), servers.Rule(fault.Duplicate), servers.Rule(fault.Cancel),
		servers.Compact(), servers.Reset(), servers.Crash(), servers.Rule(fault.LoseLeader), servers.Rule(fault.Partition),
		servers.RemoveRule(), servers.Rules(), servers.Held(),
		servers.Advance(), servers.Settle(), servers.Order(), run.Eventually(), run.Consistently(), run.Repeat(),
		servers.Ready(), servers.Await(), servers.Rule(fault.Fire),
		clients.Apply(), clients.Delete(), clients.Get(), clients.List(), clients.Kubectl(),
		clients.Logs(), clients.Exec(), clients.PortForward(),
		clients.Request(), checks.Expect(), checks.Never(), checks.Check(), servers.Stored(),
		checks.Assert(), checks.Match(),
		clients.Watch(), clients.Informer(), programs.Controller(), programs.Candidate(), programs.ControllerManager(), programs.Scheduler(), programs.Nodes(),
		clients.Next(), clients.Drain(), clients.Lister(), clients.Unwatch(),
		clients.As(), clients.Via(), clients.Accept(), clients.CreateToken(), clients.Whoami(),
		fakes.Fake(), fakes.Answer(), fakes.Open(), fakes.Cut(), fakes.Heal(), fakes.IssueToken(), fakes.RotateKey(), fakes.Calls(),
		servers.Hooks(), clients.Readyz(), run.Note(), run.Timeline(), run.Break(), run.Help(),
	}
}

// close stops whatever is still running at the end of the script.
func (g *commandGroups) close() error {
	ctx := g.run.Background()
	g.clients.Close()
	return errors.Join(g.servers.Close(ctx), g.fakes.Close(ctx), g.servers.CloseStore(ctx))
}

// commandsOf are the commands of a script that does not run: they can be described and checked.
func commandsOf(s script.Script) []engine.Command {
	return newCommandGroups(engine.New(context.Background(), s, engine.Options{}), Options{}).commands()
}

// Validate returns what is certainly wrong with a script, as far as that can be known
// before it runs; Run would refuse it. The error joins one for each mistake, each of which
// is a line that begins with its place.
func Validate(s script.Script) error { return engine.Check(s, commandsOf(s)) }

// LeftOut are the commands of a script that are left out of this build: it can't run here. A
// whole build leaves out nothing; see package light.
func LeftOut(s script.Script) []string { return engine.LeftOut(s, commandsOf(s)) }

// alone reports whether no other script can run beside this one.
func alone(s script.Script) bool { return engine.RunsAlone(s, commandsOf(s)) }

// WriteUsage writes what a script command does, for people to read; without a name it lists
// all commands, one per line.
func WriteUsage(w io.Writer, name string) error {
	return engine.WriteUsage(w, commandsOf(script.Script{}), name)
}
