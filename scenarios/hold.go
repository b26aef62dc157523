package scenarios

import (
	"context"
	"fmt"
)

var holdCommand = command{
	name:  "hold",
	args:  "cache RESOURCE",
	least: 1, most: anyNumber,
	summary: "keep the watch cache of a resource behind the store",
	details: `From now on, writes reach the store but not the cache, until "release cache".
Post-start hooks can only be held from the start: start --hold HOOK.`,
	example: "hold cache configmaps",
	run: func(ctx context.Context, s *session, args []string) error {
		if len(args) == 2 && args[0] == "cache" {
			return s.holdCache(ctx, args[1])
		}
		if len(args) > 0 && args[0] == "hook" {
			return fmt.Errorf("%w: hooks are held from the start; write: start --hold HOOK", errUsage)
		}
		return errUsage
	},
}

func (s *session) holdCache(ctx context.Context, name string) error {
	if s.server == nil {
		return errNoServer
	}
	found, err := s.resource(ctx, name)
	if err != nil || s.opts.tamper.openCaches {
		return err
	}
	resource := found.gvr.GroupResource().String()
	if s.heldCaches[resource] != nil {
		return fmt.Errorf("the watch cache of %s is held already", resource)
	}
	freeze, err := s.server.Faults().Inject("freeze cache/" + resource + " optional")
	if err == nil {
		s.heldCaches[resource] = freeze
	}
	return err
}
