package chain

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"

	"snowglobe.test/envtest/chain/bootstrap"
	"snowglobe.test/envtest/chain/upstream"
	"snowglobe.test/envtest/trace"
)

// Upstream gives back much of what it takes only after its boot: controllers make
// their work queues when they are built and shut them down when they have run, and
// some wait without end for others. So a boot that is to be stopped is let finish
// first, and the controllers of a server that never runs are run when all is over.

// finishTimeout bounds each of the two, and the end of connections to the store.
const finishTimeout = 10 * time.Second

// bootPollInterval is how often a boot that is to be stopped is looked at.
const bootPollInterval = 5 * time.Millisecond

// abandonPatience is three times as long as the pause between two looks at what the
// controllers of autoregistration wait for.
const abandonPatience = 300 * time.Millisecond

// errEnded is why what waits for the chain gives up.
var errEnded = errors.New("the API server has ended")

// EndFaults ends all that rules do to the chain: what they hold goes on, and
// dropped lifecycle signals fire. A server needs it to end.
func (c *Chain) EndFaults() {
	c.injector.End()
	c.ending.End()
	for _, s := range c.signals {
		s.Signal()
	}
}

// end gives back what upstream's Run does not, or would have. Goroutines of the
// configuration wait for signals that upstream leaves unset when it fails early.
func (c *Chain) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), finishTimeout)
	defer cancel()
	ready := c.BeenReady()
	c.EndFaults()
	c.firing.Wait()
	c.firingAtEnd.Wait()
	c.endLife(errEnded)
	c.peerLease.Destroy() // unless its hook has, which a rule may have dropped
	if c.servers.aggregator != nil && !ready {
		logChanged(upstream.ShutDownDiscovery(c.servers.aggregator))
	}
	var errs []error
	if c.state.storage != nil {
		errs = append(errs, c.state.storage.Close(ctx))
	}
	errs = append(errs, c.storeDialer.End(ctx))
	c.egress.Close()
	for _, log := range c.auditLogs {
		errs = append(errs, upstream.EndAuditLog(log))
	}
	if c.informerName != nil {
		c.informerName.Release()
	}
	return errors.Join(errs...)
}

// release gives back what a chain that never runs has taken, after any stage.
func (c *Chain) release() {
	c.injector.End()                // nothing below may wait for a rule,
	c.cfg.Endpoint.RefuseLoopback() // or for a server that never serves
	if c.generic != nil {
		c.awaitStoreClients()
		c.storeDialer.Stop()
		c.releaseControllers()
	}
	if c.endpoints != nil {
		c.endpoints.Destroy()
	}
	if server := c.headmost(); server != nil {
		server.Destroy() // and those it delegates to
	}
	_ = c.end() // what is left is named in the error of the stop
}

// headmost is the server nearest to the chain's head that is built, nil if none is.
func (c *Chain) headmost() *genericapiserver.GenericAPIServer {
	switch {
	case c.servers.aggregator != nil:
		return c.servers.aggregator.GenericAPIServer
	case c.servers.kubeapi != nil:
		return c.servers.kubeapi.ControlPlane.GenericAPIServer
	case c.servers.apiextensions != nil:
		return c.servers.apiextensions.GenericAPIServer
	}
	return nil
}

// releaseControllers runs, with an ended context, the controllers that have been
// built: those of hooks, and those that upstream builds before a server has hooks.
func (c *Chain) releaseControllers() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	released := make(chan struct{})
	go func() {
		defer close(released)
		c.runHooks(ended)
		config := c.generic.config
		if config.FlowControl != nil && c.headmost() == nil {
			_ = config.FlowControl.Run(ended.Done())
		}
		for _, content := range c.certificates() {
			if controller, ok := content.(dynamiccertificates.ControllerRunner); ok && !reflect.ValueOf(content).IsNil() {
				controller.Run(ended, 1)
			}
		}
	}()
	select {
	case <-released:
	case <-time.After(finishTimeout): // what is left is named in the error of the stop
	}
}

// runHooks calls upstream's post-start hooks, but not those that only try for 30s.
func (c *Chain) runHooks(ctx context.Context) {
	c.autoregistering.Abandon()
	var hooks map[string]genericapiserver.PostStartHookFunc
	if c.hooks != nil {
		hooks = c.hooks.upstream
	} else {
		var err error
		hooks, err = upstream.PostStartHooks(c.headmost(), c.generic.config)
		logChanged(err)
		if hook := hooks[bootstrap.ServiceRepairHook]; hook != nil {
			hooks[bootstrap.ServiceRepairHook], err = bootstrap.ServiceRepair(hook)
			logChanged(err)
		}
	}
	prompt := bootstrap.Hooks()
	for name, hook := range hooks {
		if hook != nil && prompt[name] == nil {
			_ = hook(genericapiserver.PostStartHookContext{Context: ctx, LoopbackClientConfig: c.generic.config.LoopbackClientConfig})
		}
	}
}

// certificates are the certificates and CAs that upstream may watch in files.
func (c *Chain) certificates() []any {
	var all []any
	if serving := c.generic.config.SecureServing; serving != nil {
		all = append(all, serving.Cert, serving.ClientCA)
		for _, cert := range serving.SNICerts {
			all = append(all, cert)
		}
	}
	if kube := c.configs.kubeapi.Config; kube != nil {
		all = append(all, kube.ControlPlane.ClusterAuthenticationInfo.RequestHeaderCA)
	}
	return all
}

// awaitStoreClients waits until the etcd clients of upstream's health checks have
// connected, if flags left the checks to upstream. It makes them in the background,
// and loses one that does not connect.
func (c *Chain) awaitStoreClients() {
	if c.options.Etcd.SkipHealthEndpoints {
		return
	}
	config := c.generic.config
	checks := slices.Concat(config.HealthzChecks, config.ReadyzChecks)
	connected := func(context.Context) (bool, error) {
		return !slices.ContainsFunc(checks, func(check healthz.HealthChecker) bool {
			return strings.HasPrefix(check.Name(), "etcd") && check.Check(nil) != nil
		}), nil
	}
	_ = wait.PollUntilContextTimeout(context.Background(), bootPollInterval, finishTimeout, true, connected)
}

// logChanged only logs that upstream changed: what is released has failed already.
func logChanged(err error) {
	if err != nil {
		klog.Errorf("Release the API server: %v", err)
	}
}

// finishBoot ends all that rules do to a boot, and waits until all hooks have
// returned, what they started can be stopped, and the server is as ready as it
// gets. A boot that takes too long is given up.
func (c *Chain) finishBoot(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	c.injector.End()
	if !c.awaitBoot(ctx) {
		c.cfg.Endpoint.RefuseLoopback()
		c.abandonAutoregistration()
	}
}

// awaitBoot reports whether the boot is over before the context ends.
func (c *Chain) awaitBoot(ctx context.Context) bool {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		c.hooks.Wait()
	}()
	for _, done := range []<-chan struct{}{returned, c.autoregistering.Began()} {
		select {
		case <-done:
		case <-ctx.Done():
			return false
		}
	}
	return wait.PollUntilContextCancel(ctx, bootPollInterval, true, func(ctx context.Context) (bool, error) {
		return c.bootDone(ctx), nil
	}) == nil
}

// abandonAutoregistration lets the hook's controllers go on that wait for others, and waits
// until they run. A hook that has not even been called starts none.
func (c *Chain) abandonAutoregistration() {
	c.autoregistering.Abandon()
	select {
	case <-c.autoregistering.Began():
	case <-time.After(abandonPatience):
	}
}

// bootDone says whether the server has been ready, or is as ready as it gets.
func (c *Chain) bootDone(ctx context.Context) bool {
	if c.BeenReady() {
		return true
	}
	ready, checks := c.Probe(ctx, "readyz")
	return ready || len(checks) > 0 && !slices.ContainsFunc(checks, awaited)
}

// awaited says whether a check is red that the boot turns green: not those of failed hooks, nor
// those of KMS plugins, which may never answer.
func awaited(check trace.Check) bool {
	return !check.OK && !strings.HasPrefix(check.Name, "poststarthook/") && !strings.HasPrefix(check.Name, "kms-provider")
}
