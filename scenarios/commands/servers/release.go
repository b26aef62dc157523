package servers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/story"
)

func (s *Servers) Release() engine.Command {
	return engine.Command{
		Name:    "release",
		Args:    "POINT [KEY=VALUE]... | hooks [FILE]",
		Summary: "let operations that are held or frozen go on",
		Details: `It removes the hold and freeze rules for that point, and those that say more about it than
this command, such as server=. If there are none, it lets operations go on that wait there
because of broader rules, and keeps those rules. It does not wait for the operations to
finish.

"release hooks" releases all post-start hooks that are held. With a FILE it
releases the hooks listed in the file, one per line, in that order, each only
once the readiness check of the previous one is ok.`,
		Example: "release hook/crd-informer-synced\nrelease cache/configmaps\nrelease hooks order.txt",
		Needs:   s.Running,
		Static: func(flags *pflag.FlagSet, args []string) error {
			if args[0] == "hooks" && len(args) <= 2 {
				return nil
			}
			return checkMatch(flags, args)
		},
		Files: func(_ *pflag.FlagSet, args []string) []engine.NamedFile {
			if args[0] == "hooks" {
				return engine.NamedFiles(nil, args[1:]...)
			}
			return nil
		},
		Run: func(ctx context.Context, args []string) error {
			switch {
			case len(args) == 1 && args[0] == "hooks":
				return s.releaseHooks(heldHooks(s.plane))
			case len(args) == 2 && args[0] == "hooks":
				text, err := s.run.ReadFile(args[1])
				if err != nil {
					return err
				}
				return s.releaseInOrder(ctx, hooksOfFile(text))
			}
			return s.release(ruleText(args))
		},
	}
}

// release removes the script's hold and freeze rules that the text covers. Without such
// rules it lets the operations go on that wait there.
func (s *Servers) release(text string) error {
	match, _ := readMatch(text)
	released := false
	s.rules = slices.DeleteFunc(s.rules, func(rule *scriptRule) bool {
		if waits := rule.Kind == fault.Hold || rule.Kind == fault.Freeze; !waits || rule.Match != match && !match.Includes(&rule.Match) {
			return false
		}
		rule.entry.Remove()
		released = true
		return true
	})
	if released {
		return nil
	}
	return s.plane.Faults().Release(text)
}

func orNone(names []string) string {
	return cmp.Or(strings.Join(names, ", "), "none")
}

// releaseHook releases a post-start hook.
func (s *Servers) releaseHook(name string) error {
	return s.plane.Faults().Release(fault.HookPoint + name + " verb=" + string(trace.PostStart))
}

// releaseHooks releases hooks, all at once.
func (s *Servers) releaseHooks(names []string) error {
	for _, name := range names {
		if err := s.releaseHook(name); err != nil {
			return err
		}
	}
	return nil
}

// hooksOfFile reads names of hooks, one per line; # begins a comment.
func hooksOfFile(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if name := strings.TrimSpace(line); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// releaseInOrder releases each hook once the check of the one before it is ok.
func (s *Servers) releaseInOrder(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return errors.New("the file lists no hook")
	}
	for _, name := range names {
		if err := s.releaseHook(name); err != nil {
			return err
		}
		if err := awaitCheck(ctx, s.plane, story.CheckOfHook(name), true); err != nil {
			return err
		}
	}
	return nil
}
