package chain

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/chain/upstream"
)

// prepare is upstream's PrepareRun of all servers: OpenAPI, healthz, livez, readyz.
func (c *Chain) prepare(context.Context) error {
	if err := c.addHooks(); err != nil {
		return err
	}
	c.installOpenAPI()
	err := onOwnStack(func() (err error) {
		c.prepared, err = c.servers.aggregator.PrepareRun()
		return err
	})
	if err != nil {
		return err
	}
	if err := upstream.ShareRoutePaths(c.services()); err != nil {
		return err
	}
	if err := c.polling.Slow(c.servers.aggregator); err != nil {
		return err
	}
	handler := c.servers.aggregator.GenericAPIServer.Handler
	c.untraced = handler.FullHandlerChain
	handler.FullHandlerChain = c.requests.Outermost(c.untraced)
	return nil
}

// onOwnStack runs do on a stack of its own: upstream keeps the stack of whoever registers a path,
// of 300 paths with PrepareRun, and that takes the longer the deeper it is.
func onOwnStack(do func() error) error {
	ended, returned := make(chan error, 1), false
	go func() {
		defer close(ended)
		err := do()
		returned = true
		ended <- err
	}()
	err := <-ended
	if !returned { // a fatal log line or a panic has ended the goroutine, and ends the server
		runtime.Goexit()
	}
	return err
}

// addHooks adds the post-start hooks of the configuration, before PrepareRun makes the
// checks of all hooks.
func (c *Chain) addHooks() error {
	for _, name := range slices.Sorted(maps.Keys(c.cfg.PostStartHooks)) {
		hook := c.cfg.PostStartHooks[name]
		if _, taken := c.server().PostStartHooks()[name]; taken {
			return fmt.Errorf("post-start hook %q: upstream has one of that name; choose another", name)
		}
		err := c.server().AddPostStartHook(name, func(ctx genericapiserver.PostStartHookContext) error {
			return hook(ctx, ctx.LoopbackClientConfig)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
