package nodes

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// play is the life of one Pod on a node, until it is done or the context ends; terminate
// is closed when the Pod is being deleted.
func (n *Nodes) play(ctx context.Context, pod *corev1.Pod, terminate <-chan struct{}) {
	script := n.config.Script(pod)
	address := n.address()
	if n.report(ctx, pod, status(pod, address, starting, 0, 0)) {
		return
	}
	if !script.Never && n.start(ctx, pod, script, address, terminate) {
		return // gone from the API server
	}
	select {
	case <-terminate:
	case <-ctx.Done():
		return
	}
	if !script.Never {
		sleep(ctx, min(script.StopsAfter, gracePeriod(pod)), nil)
	}
	n.insist(ctx, func() error {
		err := n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
		if apierrors.IsConflict(err) { // another of the name
			return nil
		}
		return err
	})
}

// start runs the containers of a Pod, again and again if they end. It returns when they
// have ended for good or the Pod is to be terminated, and says whether the Pod is gone.
func (n *Nodes) start(ctx context.Context, pod *corev1.Pod, script Script, address string, terminate <-chan struct{}) (gone bool) {
	pause := firstPause
	for restarts := int32(0); ; restarts++ {
		if !sleep(ctx, script.ReadyAfter, terminate) {
			return false
		}
		if gone := n.report(ctx, pod, status(pod, address, running, 0, restarts)); gone || !script.ends(pod) {
			return gone
		}
		if !sleep(ctx, script.Runs, terminate) {
			return false
		}
		if !script.restarts(pod) {
			return n.report(ctx, pod, status(pod, address, done, script.ExitCode, restarts))
		}
		if n.report(ctx, pod, status(pod, address, waiting, script.ExitCode, restarts+1)) {
			return true
		}
		if !sleep(ctx, pause, terminate) {
			return false
		}
		pause = min(2*pause, maxPause)
	}
}

// report writes a Pod's status, and says whether the Pod is gone.
func (n *Nodes) report(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) (gone bool) {
	pods := n.client.CoreV1().Pods(pod.Namespace)
	return n.insist(ctx, func() error {
		now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now.UID != pod.UID {
			return apierrors.NewNotFound(corev1.Resource("pods"), pod.Name)
		}
		reported := *status.DeepCopy()
		reported.Conditions = merged(now.Status.Conditions, reported.Conditions)
		now.Status = reported
		updated, err := pods.UpdateStatus(ctx, now, metav1.UpdateOptions{})
		if err == nil {
			*pod = *updated
		}
		return err
	})
}

// insist tries again and again, as a kubelet does, until the request has succeeded, the
// Pod is gone or the context ends; gone says that it was not the first.
func (n *Nodes) insist(ctx context.Context, request func() error) (gone bool) {
	for {
		err := request()
		switch {
		case err == nil:
			return false
		case apierrors.IsNotFound(err) || ctx.Err() != nil:
			return true
		case apierrors.IsConflict(err):
			continue
		}
		sleep(ctx, retryPause, nil)
	}
}

// retryPause is between two tries of a request.
const retryPause = time.Second

// merged keeps the conditions of others, such as the scheduler's.
func merged(theirs, ours []corev1.PodCondition) []corev1.PodCondition {
	for _, condition := range theirs {
		if !slices.ContainsFunc(ours, func(c corev1.PodCondition) bool { return c.Type == condition.Type }) {
			ours = append(ours, condition)
		}
	}
	return ours
}

func gracePeriod(pod *corev1.Pod) time.Duration {
	wanted := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	return time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, wanted)) * time.Second
}

// sleep sleeps, and reports whether it has slept to the end: nothing interrupted it.
func sleep(ctx context.Context, d time.Duration, interrupt <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-interrupt:
		return false
	case <-ctx.Done():
		return false
	}
}
