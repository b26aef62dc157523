package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

var releaseCommand = command{
	name:  "release",
	args:  "hook HOOK... | hooks [FILE] | cache RESOURCE",
	least: 1, most: anyNumber,
	summary: "release what is held",
	details: `"release hook" lets the named post-start hooks run and does not wait for them.
"release hooks" does the same for all held hooks. With a FILE it releases the
hooks that the file lists, one per line, in that order, each only once the
readiness check of the one before is ok. "release cache" lets the watch cache of
a resource catch up and does not wait for it.`,
	example:  "release hook crd-informer-synced\nrelease hooks order.txt\nrelease cache configmaps",
	onServer: true,
	run: func(ctx context.Context, s *session, args []string) error {
		switch {
		case len(args) >= 2 && args[0] == "hook":
			return s.releaseHooks(args[1:])
		case len(args) == 1 && args[0] == "hooks":
			_, held := apiServer(s.server).Hooks()
			return s.releaseHooks(held)
		case len(args) == 2 && args[0] == "hooks":
			return s.releaseInOrder(ctx, hooksOfFile(s.ts.ReadFile(args[1])))
		case len(args) == 2 && args[0] == "cache":
			return s.releaseCache(ctx, args[1])
		}
		return errUsage
	},
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
	if s.opts.tamper.order != nil {
		s.opts.tamper.order(names)
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

func (s *session) releaseCache(ctx context.Context, name string) error {
	found, err := s.resource(ctx, name)
	if err != nil || s.opts.tamper.openCaches {
		return err
	}
	resource := found.gvr.GroupResource().String()
	freeze := s.heldCaches[resource]
	if freeze == nil {
		return fmt.Errorf("the watch cache of %s is not held", resource)
	}
	delete(s.heldCaches, resource)
	freeze.Remove()
	return nil
}
