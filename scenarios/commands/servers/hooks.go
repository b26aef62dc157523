package servers

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest"
	"snowglobe.test/scenarios/engine"
)

func (s *Servers) Hooks() engine.Command {
	return engine.Command{
		Name:    "hooks",
		Args:    "[--held]",
		Summary: "print the names of the post-start hooks",
		Details: `With --held it prints only held hooks; otherwise held hooks have "held" after
their names.`,
		Example: "hooks --held\n! stdout .",
		Needs:   s.Running,
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			onlyHeld := flags.Bool("held", false, "")
			return func(_ context.Context, args []string) error {
				held := heldHooks(s.plane)
				for _, hook := range hooksOf(s.plane) {
					switch isHeld := slices.Contains(held, hook); {
					case isHeld && !*onlyHeld:
						fmt.Fprintln(&s.run.Stdout, hook, "held")
					case isHeld || !*onlyHeld:
						fmt.Fprintln(&s.run.Stdout, hook)
					}
				}
				return nil
			}
		},
	}
}

// hooksOf are the post-start hooks of every server, sorted.
func hooksOf(plane *envtest.ControlPlane) []string { return plane.Faults().Names()["post-start hook"] }

// heldHooks are those of the first server that rules hold, sorted.
func heldHooks(plane *envtest.ControlPlane) []string {
	return plane.Faults().HeldHooks(plane.Servers()[0].Name())
}
