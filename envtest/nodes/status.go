package nodes

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stage is where a Pod's containers are.
type stage int

const (
	starting stage = iota
	running
	done    // ended for good
	waiting // ended, and about to start again
)

// status is what a kubelet reports about a Pod at a stage.
func status(pod *corev1.Pod, address string, at stage, exitCode, restarts int32) corev1.PodStatus {
	now := metav1.NewTime(time.Now())
	s := *pod.Status.DeepCopy()
	s.HostIP, s.HostIPs = nodeAddress, []corev1.HostIP{{IP: nodeAddress}}
	s.PodIP, s.PodIPs = address, []corev1.PodIP{{IP: address}}
	if s.StartTime == nil {
		s.StartTime = &now
	}
	s.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, containerStatus(container, now, at, exitCode, restarts))
	}
	s.Phase = phase(at, exitCode)
	ready := corev1.ConditionFalse
	if at == running {
		ready = corev1.ConditionTrue
	}
	setCondition(&s, corev1.PodInitialized, corev1.ConditionTrue, now)
	setCondition(&s, corev1.ContainersReady, ready, now)
	setCondition(&s, corev1.PodReady, ready, now)
	return s
}

func phase(at stage, exitCode int32) corev1.PodPhase {
	switch {
	case at == starting:
		return corev1.PodPending
	case at == done && exitCode == 0:
		return corev1.PodSucceeded
	case at == done:
		return corev1.PodFailed
	default:
		return corev1.PodRunning
	}
}

func containerStatus(container corev1.Container, now metav1.Time, at stage, exitCode, restarts int32) corev1.ContainerStatus {
	started := at == running
	s := corev1.ContainerStatus{
		Name: container.Name, Image: container.Image, ImageID: container.Image, RestartCount: restarts,
		Ready: started, Started: &started, ContainerID: fmt.Sprintf("simulated://%s/%d", container.Name, restarts),
	}
	ended := &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: "Completed", FinishedAt: now, StartedAt: now}
	if exitCode != 0 {
		ended.Reason = "Error"
	}
	switch at {
	case starting:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	case running:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
	case done:
		s.State.Terminated = ended
	case waiting:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		s.LastTerminationState.Terminated = ended
	}
	return s
}

// setCondition sets a condition, with the time of its last change.
func setCondition(s *corev1.PodStatus, kind corev1.PodConditionType, value corev1.ConditionStatus, now metav1.Time) {
	for i := range s.Conditions {
		c := &s.Conditions[i]
		if c.Type != kind {
			continue
		}
		if c.Status != value {
			c.Status, c.LastTransitionTime = value, now
		}
		return
	}
	s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: now})
}
