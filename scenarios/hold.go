package scenarios

import (
	"context"
	"fmt"
)

func holdCommand() command {
	return command{
		name:    "hold",
		args:    "cache RESOURCE",
		summary: "keep the watch cache of a resource behind the store",
		details: `From now on, writes reach the store but not the cache, until "release cache".
Post-start hooks can only be held from the start: start --hold HOOK.`,
		example: "hold cache configmaps",
		prepare: plain(func(ctx context.Context, s *session, args []string) error {
			if len(args) == 2 && args[0] == "cache" {
				return s.holdCache(ctx, args[1])
			}
			if len(args) > 0 && args[0] == "hook" {
				return fmt.Errorf("%w: hooks are held from the start; write: start --hold HOOK", errUsage)
			}
			return errUsage
		}),
	}
}

// holdCache keeps the watch cache of a resource behind the store.
func (s *session) holdCache(ctx context.Context, name string) error {
	server, err := s.running()
	if err != nil {
		return err
	}
	found, err := s.resource(ctx, name)
	if err != nil || s.opts.tamper.openCaches {
		return err
	}
	resource := found.gvr.GroupResource().String()
	if s.heldCaches[resource] != nil {
		return fmt.Errorf("the watch cache of %s is held already", resource)
	}
	freeze, err := server.Faults().Inject("freeze cache/" + resource + " optional")
	if err == nil {
		s.heldCaches[resource] = freeze
	}
	return err
}
