package bootstrap

// Works around RESTStorageProvider.PostStartHook (k8s.io/kubernetes/pkg/registry/
// scheduling/rest, storage_scheduling.go), which waits a second before it adds the
// system priority classes. TestPriorityClasses and TestUpstreamPauses of envtest
// notice when upstream changes.

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	schedulingclient "k8s.io/client-go/kubernetes/typed/scheduling/v1"
	schedulingapiv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
)

// priorityClasses is the hook scheduling/bootstrap-system-priority-classes. Like
// upstream's it retries what may pass and fails on all else, such as an admission
// plugin that is "not yet ready to handle request".
func priorityClasses(hook genericapiserver.PostStartHookContext) error {
	client, err := schedulingclient.NewForConfig(hook.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("unable to add default system priority classes: %w", err)
	}
	err = retry(hook, func() (bool, error) { return addPriorityClasses(hook, client) })
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
