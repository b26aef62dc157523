package nodes

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// player simulates one Pod on a node: it reports the status that the Pod's Script leads to.
type player struct {
	*Nodes
	pod           *corev1.Pod // as last reported
	script        Script
	host, address string
}

// play simulates the Pod until it is gone or ctx ends. lives ends earlier, when the Pod is being
// deleted.
func (p *player) play(ctx, lives context.Context) {
	p.script = p.config.Script(p.pod)
	if !p.finished() && (p.tell(ctx, progress{at: starting}) || !p.script.Never && p.run(ctx, lives)) {
		return // gone from the API server
	}
	<-lives.Done()
	if ctx.Err() != nil {
		return
	}
	if !p.script.Never && !p.finished() {
		sleep(ctx, min(p.script.StopsAfter, gracePeriod(p.pod)))
	}
	p.insist(ctx, func() error {
		err := p.client.CoreV1().Pods(p.pod.Namespace).Delete(ctx, p.pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &p.pod.UID},
		})
		if apierrors.IsConflict(err) { // this is a new Pod of the same name
			return nil
		}
		return err
	})
}

// finished reports whether the Pod's containers have ended for good.
func (p *player) finished() bool {
	return p.pod.Status.Phase == corev1.PodSucceeded || p.pod.Status.Phase == corev1.PodFailed
}

var errDeadline = errors.New("the Pod's active deadline has passed")

// run runs the containers until they have ended for good, the Pod is to be terminated or its
// active deadline has passed. It says whether the Pod is gone.
func (p *player) run(ctx, lives context.Context) (gone bool) {
	if seconds := p.pod.Spec.ActiveDeadlineSeconds; seconds != nil {
		var cancel context.CancelFunc
		lives, cancel = context.WithTimeoutCause(lives, time.Duration(*seconds)*time.Second, errDeadline)
		defer cancel()
	}
	gone = p.start(ctx, lives)
	if !gone && context.Cause(lives) == errDeadline {
		return p.tell(ctx, progress{at: expired})
	}
	return gone
}

// start runs the containers, again and again if they end.
func (p *player) start(ctx, lives context.Context) (gone bool) {
	if ready, gone := p.awaitNeeds(ctx, lives); !ready {
		return gone
	}
	pause := firstPause
	for restarts := int32(0); ; restarts++ {
		if !sleep(lives, p.script.ReadyAfter) {
			return false
		}
		if p.tell(ctx, progress{at: running, restarts: restarts}) {
			return true
		}
		if !p.script.ends(p.pod) {
			<-lives.Done()
			return false
		}
		if !sleep(lives, p.script.Runs) {
			return false
		}
		if !p.script.restarts(p.pod) {
			return p.tell(ctx, progress{at: done, exitCode: p.script.ExitCode, restarts: restarts})
		}
		if p.tell(ctx, progress{at: waiting, exitCode: p.script.ExitCode, restarts: restarts + 1}) {
			return true
		}
		if !sleep(lives, pause) {
			return false
		}
		pause = min(2*pause, maxPause)
	}
}

// tell reports how far the Pod's containers have got, and says whether the Pod is gone.
func (p *player) tell(ctx context.Context, now progress) (gone bool) {
	return p.report(ctx, p.pod, func(status *corev1.PodStatus) { p.setStatus(status, now) })
}

// report changes a Pod's status, and says whether the Pod is gone.
func (n *Nodes) report(ctx context.Context, pod *corev1.Pod, change func(*corev1.PodStatus)) (gone bool) {
	pods := n.client.CoreV1().Pods(pod.Namespace)
	return n.insist(ctx, func() error {
		now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now.UID != pod.UID {
			return apierrors.NewNotFound(corev1.Resource("pods"), pod.Name)
		}
		change(&now.Status)
		setReadiness(&now.Status, now.Spec.ReadinessGates)
		now.Status.ObservedGeneration = now.Generation
		updated, err := pods.UpdateStatus(ctx, now, metav1.UpdateOptions{})
		if err == nil {
			*pod = *updated
		}
		return err
	})
}

// insist tries again and again, as a kubelet does, until the request has succeeded, the
// object is gone or the context ends. gone is false only if the request has succeeded.
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
		sleep(ctx, retryPause)
	}
}

// retryPause is between two tries of a request.
const retryPause = time.Second

func gracePeriod(pod *corev1.Pod) time.Duration {
	wanted := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	return time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, wanted)) * time.Second
}

// sleep sleeps, and reports whether it has slept to the end: the context has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
