package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/internal/nearest"
)

var releaseCommand = command{
	name:  "release",
	args:  "POINT [KEY=VALUE]... | hooks [FILE]",
	least: 1, most: anyNumber,
	summary: "let operations that are held or frozen go on",
	details: `It lifts the hold and freeze rules for that point. If there are none, it lets operations
go on that wait there because of broader rules, and keeps those rules.
It does not wait for the operations to finish.

"release hooks" releases all post-start hooks that are held. With a FILE it
releases the hooks listed in the file, one per line, in that order, each only
once the readiness check of the previous one is ok.`,
	example:  "release hook/crd-informer-synced\nrelease cache/configmaps\nrelease hooks order.txt",
	onServer: true,
	run: func(ctx context.Context, s *session, args []string) error {
		switch {
		case len(args) == 1 && args[0] == "hooks":
			_, held := apiServer(s.server).Hooks()
			return s.releaseHooks(held)
		case len(args) == 2 && args[0] == "hooks":
			return s.releaseInOrder(ctx, hooksOfFile(s.ts.ReadFile(args[1])))
		}
		return s.release(ruleText(args))
	},
}

// release lets go what waits at the points that match.
func (s *session) release(text string) error {
	match, err := fault.ParseMatch(text, nil)
	if err != nil {
		return fmt.Errorf("%w: %q: %w", errUsage, text, err)
	}
	released := false
	s.rules = slices.DeleteFunc(s.rules, func(rule *scriptRule) bool {
		if waits := rule.Kind == fault.Hold || rule.Kind == fault.Freeze; !waits || rule.Match != match {
			return false
		}
		rule.entry.Remove()
		released = true
		return true
	})
	if released {
		return nil
	}
	for _, entry := range s.server.Faults().Rules() {
		gate := entry.Gate()
		if gate == nil {
			continue
		}
		for _, op := range gate.Waiting() {
			if match.Covers(&op) && gate.ReleaseOnly(op) {
				released = true
			}
		}
	}
	if released {
		return nil
	}
	held := s.heldPoints()
	return fmt.Errorf("nothing is held at %s; held are: %s%s", match, orNone(held), nearest.DidYouMean(match.Point, held))
}

// heldPoints are the points at which rules hold operations, each once.
func (s *session) heldPoints() []string {
	var points []string
	for _, held := range s.server.Faults().Held() {
		if held.Rule.Kind != "" && !slices.Contains(points, held.Point) {
			points = append(points, held.Point)
		}
	}
	return points
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// releaseHooks releases hooks, all at once.
func (s *session) releaseHooks(names []string) error {
	for _, name := range names {
		if err := s.server.ReleaseHook(name); err != nil {
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
func (s *session) releaseInOrder(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return errors.New("the file lists no hook")
	}
	for _, name := range names {
		if err := s.server.ReleaseHook(name); err != nil {
			return err
		}
		if err := awaitCheck(ctx, s.server, checkOfHook(name), true); err != nil {
			return err
		}
	}
	return nil
}
