package nodes

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// stage is where a Pod's containers are.
type stage int

const (
	starting stage = iota
	running
	done    // ended for good
	waiting // ended, and about to start again
	expired // stopped, at the Pod's active deadline
)

// progress is a stage with what belongs to it.
type progress struct {
	at                 stage
	exitCode, restarts int32
	reason, message    string // of starting
	completed          bool   // an init container that has ended, which counts as ready
}

// killed is the exit code of a container that is killed: 128 and the number of SIGKILL.
const killed = 137

// setStatus sets what a kubelet reports about the Pod, but its readiness.
func (p *player) setStatus(s *corev1.PodStatus, to progress) {
	now := metav1.NewTime(time.Now())
	s.HostIP, s.HostIPs = p.host, []corev1.HostIP{{IP: p.host}}
	s.PodIP, s.PodIPs = p.address, []corev1.PodIP{{IP: p.address}}
	if s.StartTime == nil {
		s.StartTime = &now
	}
	s.Phase = corev1.PodRunning
	switch {
	case to.at == starting:
		s.Phase = corev1.PodPending
	case to.at == expired:
		s.Phase, s.Reason, s.Message = corev1.PodFailed, "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
		to.exitCode = killed
	case to.at == done && to.exitCode == 0:
		s.Phase = corev1.PodSucceeded
	case to.at == done:
		s.Phase = corev1.PodFailed
	}
	if to.at == starting && to.reason == "" {
		to.reason = "ContainerCreating"
		if len(p.pod.Spec.InitContainers) > 0 {
			to.reason = "PodInitializing"
		}
	}
	s.InitContainerStatuses = p.containers(p.pod.Spec.InitContainers, s.InitContainerStatuses, to.ofInit, now)
	s.ContainerStatuses = p.containers(p.pod.Spec.Containers, s.ContainerStatuses, func(corev1.Container) progress { return to }, now)
	initialized := to.at != starting || len(p.pod.Spec.InitContainers) == 0
	setCondition(s, corev1.PodReadyToStartContainers, to.at == running || to.at == waiting, "")
	setCondition(s, corev1.PodInitialized, initialized, "ContainersNotInitialized")
	reason := "ContainersNotReady"
	if s.Phase == corev1.PodSucceeded {
		reason = "PodCompleted"
	}
	setCondition(s, corev1.ContainersReady, to.at == running, reason)
}

// setReadiness sets the Ready condition, by which Services choose Pods: all containers are ready,
// and all readiness gates are open. It reports whether the condition has changed.
func setReadiness(s *corev1.PodStatus, gates []corev1.PodReadinessGate) (changed bool) {
	i := slices.IndexFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.ContainersReady })
	if i < 0 {
		return false // no kubelet has reported yet
	}
	ready, reason := s.Conditions[i].Status == corev1.ConditionTrue, s.Conditions[i].Reason
	for _, gate := range gates {
		open := slices.ContainsFunc(s.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
		if ready && !open {
			ready, reason = false, "ReadinessGatesNotReady"
		}
	}
	return setCondition(s, corev1.PodReady, ready, reason)
}

// containers are the statuses of containers, each of which is where at says; before are the last ones.
func (p *player) containers(containers []corev1.Container, before []corev1.ContainerStatus, at func(corev1.Container) progress, now metav1.Time) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, container := range containers {
		var last corev1.ContainerStatus
		if i := slices.IndexFunc(before, func(s corev1.ContainerStatus) bool { return s.Name == container.Name }); i >= 0 {
			last = before[i]
		}
		statuses = append(statuses, p.container(container, last, at(container), now))
	}
	return statuses
}

// ofInit is where an init container is while the others are at "to": completed, or, if it is a
// sidecar, running with them.
func (to progress) ofInit(container corev1.Container) progress {
	sidecar := ptr.Deref(container.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
	switch {
	case to.at == starting:
		return to
	case sidecar && (to.at == running || to.at == waiting):
		return progress{at: running}
	default:
		return progress{at: done, completed: !sidecar}
	}
}

func (p *player) container(container corev1.Container, last corev1.ContainerStatus, to progress, now metav1.Time) corev1.ContainerStatus {
	isRunning := to.at == running
	s := corev1.ContainerStatus{
		Name: container.Name, Image: container.Image, ImageID: container.Image, RestartCount: to.restarts,
		Ready: isRunning || to.completed, Started: &isRunning, LastTerminationState: last.LastTerminationState,
	}
	if to.at == starting {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: to.reason, Message: to.message}
		return s
	}
	s.ContainerID = fmt.Sprintf("simulated://%x", sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", p.pod.UID, container.Name, to.restarts)))
	ended := &corev1.ContainerStateTerminated{ExitCode: to.exitCode, Reason: "Completed", StartedAt: now, FinishedAt: now, ContainerID: s.ContainerID}
	if to.exitCode != 0 {
		ended.Reason = "Error"
	}
	if last.State.Running != nil {
		ended.StartedAt, ended.ContainerID = last.State.Running.StartedAt, last.ContainerID
	}
	switch to.at {
	case running:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		if last.State.Running != nil {
			s.State.Running = last.State.Running
		}
	case waiting:
		s.ContainerID = ended.ContainerID
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		s.LastTerminationState.Terminated = ended
	default:
		s.ContainerID = ended.ContainerID
		s.State.Terminated = ended
		if last.State.Terminated != nil {
			s.State.Terminated = last.State.Terminated
		}
	}
	return s
}

// setCondition sets a condition, with the time of its last change, and says whether it has changed.
// The reason is that of one which is not true.
func setCondition(s *corev1.PodStatus, kind corev1.PodConditionType, value bool, reason string) (changed bool) {
	status := corev1.ConditionFalse
	if value {
		status, reason = corev1.ConditionTrue, ""
	}
	i := slices.IndexFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind})
		i = len(s.Conditions) - 1
	}
	c := &s.Conditions[i]
	changed = c.Status != status
	if changed {
		c.LastTransitionTime = metav1.NewTime(time.Now())
	}
	c.Status, c.Reason = status, reason
	return changed
}
