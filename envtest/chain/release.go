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

// Upstream releases much of what it acquires only after its boot: controllers create their
// work queues when they are built and shut them down when their Run returns, and some wait
// for others without a limit. So a server that is to stop during its boot first finishes the
// boot (finishBoot), and the controllers of a server that never runs are run at the end, with
// an ended context, only to shut down (releaseControllers).

// finishTimeout bounds finishBoot, releaseControllers, and the end of connections to the store.
const finishTimeout = 10 * time.Second

// bootPollInterval is how often a boot that is to be stopped is looked at.
const bootPollInterval = 5 * time.Millisecond

// abandonPatience is three times as long as the pause between two looks at what the
// controllers of autoregistration wait for.
const abandonPatience = 300 * time.Millisecond

// errEnded is the cause that everything gets that still waits for the chain when it ends.
var errEnded = errors.New("the API server has ended")

// EndFaults ends all that rules do to the chain: held operations go on, and dropped
// lifecycle signals fire. Without it a server may never stop.
func (c *Chain) EndFaults() {
	c.injector.End()
	c.ending.End()
	for _, s := range c.signals {
		s.Signal()
	}
}

// end releases what upstream's Run leaves behind, or would have released if it had run. It
// also fires the lifecycle signals: when upstream fails early it does not fire them, but
// goroutines that the generic configuration has started wait for them.
func (c *Chain) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), finishTimeout)
	defer cancel()
	ready := c.BeenReady()
	c.EndFaults()
	c.firing.Wait()
	c.firingAtEnd.Wait()
	c.endLife(errEnded)
	c.peerLease.Destroy() // a hook does it too, but a rule may have dropped that
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
	if server := c.outermost(); server != nil {
		server.Destroy() // and those it delegates to
	}
	_ = c.end() // what is left is named in the error of the stop
}

// outermost is the outermost server that is built, from which a request would be delegated to
// the others; nil if none is.
func (c *Chain) outermost() *genericapiserver.GenericAPIServer {
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
		if config.FlowControl != nil && c.outermost() == nil {
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

// runHooks calls upstream's post-start hooks, so that their controllers shut down. It leaves out
// those of bootstrap.Hooks, which start no controller and would only retry for 30 seconds.
func (c *Chain) runHooks(ctx context.Context) {
	c.autoregistering.Abandon()
	var hooks map[string]genericapiserver.PostStartHookFunc
	if c.hooks != nil {
		hooks = c.hooks.upstream
	} else {
		var err error
		hooks, err = upstream.PostStartHooks(c.outermost(), c.generic.config)
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
// connected, if flags left the checks to upstream. Upstream makes these clients in the
// background, and never closes one that connects after the server has ended.
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
	// What has not connected by then is left behind; the error of the stop names its goroutines.
	_ = wait.PollUntilContextTimeout(context.Background(), bootPollInterval, finishTimeout, true, connected)
}

// logChanged only logs that upstream changed: what is released has failed already.
func logChanged(err error) {
	if err != nil {
		klog.Errorf("Release the API server: %v", err)
	}
}

// finishBoot ends all that rules do to a boot, and waits until all hooks have returned, the
// controllers of autoregistration can be stopped, and no check is left that will still turn
// ok. A boot that takes too long is given up.
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

// abandonAutoregistration lets the controllers of the autoregistration hook go on without
// those they wait for, and waits until they run: only then can they be stopped. It waits no
// longer than abandonPatience, since a hook that was never called starts no controllers.
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

// awaited reports whether a check fails that the boot will still turn ok. When all hooks have
// returned, the check of a hook fails for good; and a KMS plugin may never answer.
func awaited(check trace.Check) bool {
	return !check.OK && !strings.HasPrefix(check.Name, "poststarthook/") && !strings.HasPrefix(check.Name, "kms-provider")
}
