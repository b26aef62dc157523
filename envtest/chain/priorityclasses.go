package chain

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	schedulingclient "k8s.io/client-go/kubernetes/typed/scheduling/v1"
	schedulingapiv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
)

// bootstrapPriorityClasses is the scheduling/bootstrap-system-priority-classes
// hook without the whole second that upstream's waits before its first try. As
// upstream's it tries again what may pass and fails on all else, such as an
// admission plugin that is "not yet ready to handle request".
func bootstrapPriorityClasses(hook genericapiserver.PostStartHookContext) error {
	client, err := schedulingclient.NewForConfig(hook.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("unable to add default system priority classes: %w", err)
	}
	err = retryHook(hook, func() (bool, error) { return addPriorityClasses(hook, client) })
	if err != nil {
		return fmt.Errorf("unable to add default system priority classes: %w", err)
	}
	return nil
}

func addPriorityClasses(ctx context.Context, client schedulingclient.PriorityClassesGetter) (done bool, err error) {
	for _, class := range schedulingapiv1.SystemPriorityClasses() {
		_, err := client.PriorityClasses().Get(ctx, class.Name, metav1.GetOptions{})
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			return false, nil
		}
		_, err = client.PriorityClasses().Create(ctx, class, metav1.CreateOptions{})
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
		case apierrors.IsServiceUnavailable(err):
			return false, nil
		default:
			return false, err
		}
	}
	return true, nil
}

// Upstream's hooks of this kind try once a second for 30 seconds.
const (
	hookRetryTimeout    = 30 * time.Second
	hookRetryFirstPause = 5 * time.Millisecond
	hookRetryMaxPause   = time.Second
)

// retryHook tries at once, then after growing pauses, until it is done, fails or
// upstream's patience is over. It ends without an error when the server stops.
func retryHook(ctx context.Context, try func() (done bool, err error)) error {
	deadline := time.Now().Add(hookRetryTimeout)
	for pause := hookRetryFirstPause; ; pause = min(2*pause, hookRetryMaxPause) {
		done, err := try()
		if ctx.Err() != nil || done || err != nil {
			return errUnlessStopped(ctx, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not done within %s", hookRetryTimeout)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// errUnlessStopped keeps the errors of requests that a stopping server broke off
// from looking like a failed hook.
func errUnlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
