package servers

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"snowglobe.test/scenarios/engine"
)

func (s *Servers) Order() engine.Command {
	return engine.Command{
		Name:    "order",
		Args:    "[FILE]",
		Summary: "give operations their turns in a given order from now on (in virtual time)",
		Details: `FILE lists the operations that get a turn, one per line, each written as a rule's match,
as in "store/put resource=configmaps name=default/a"; " #2" after it means the second
such operation, and # at the beginning of a line starts a comment. The seed orders all
others, and everything if there is no FILE. If given before a start, the order is in
force from the first operation of that start.`,
		Example:    "order races.txt",
		NoNegation: true,
		Files:      func(_ *pflag.FlagSet, args []string) []engine.NamedFile { return engine.NamedFiles(nil, args...) },
		Run: func(ctx context.Context, args []string) error {
			var steps []string
			if len(args) == 1 {
				text, err := s.run.ReadFile(args[0])
				if err != nil {
					return err
				}
				for line := range strings.Lines(text) {
					if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
						steps = append(steps, line)
					}
				}
			}
			if s.plane == nil {
				s.steps = steps
				return nil
			}
			_, err := s.plane.Schedule(ctx, steps...)
			return err
		},
	}
}
