// Package bootstrap is package upstream for what lies in k8s.io/kubernetes, which it
// links: post-start hooks without their waits, which in real time would be most of a
// boot; what these hooks have written in an earlier boot of the process; and the end
// of the loops that repair service IPs. What the hooks do is upstream's.
package bootstrap

import (
	"context"
	"fmt"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
)

// Hooks returns the hooks that begin at once, by upstream's names.
func Hooks() map[string]genericapiserver.PostStartHookFunc {
	return map[string]genericapiserver.PostStartHookFunc{
		rbacrest.PostStartHookName:       roles,
		schedulingrest.PostStartHookName: priorityClasses,
	}
}

// NothingToDo returns hooks in place of those of Hooks, for a store that has all that they write.
func NothingToDo() map[string]genericapiserver.PostStartHookFunc {
	hooks := Hooks()
	for name := range hooks {
		hooks[name] = func(genericapiserver.PostStartHookContext) error { return nil }
	}
	return hooks
}

// Upstream's hooks of this kind try once a second for 30 seconds.
const (
	retryTimeout    = 30 * time.Second
	retryFirstPause = 5 * time.Millisecond
	retryMaxPause   = time.Second
)

// retry tries at once, then after growing pauses, until it is done, fails or
// upstream's patience is over. It returns no error when the server stops, as then
// its requests fail, not the hook.
func retry(ctx context.Context, try func() (done bool, err error)) error {
	deadline := time.Now().Add(retryTimeout)
	for pause := retryFirstPause; ; pause = min(2*pause, retryMaxPause) {
		done, err := try()
		switch {
		case ctx.Err() != nil:
			return nil
		case done || err != nil:
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("not done within %s", retryTimeout)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}
