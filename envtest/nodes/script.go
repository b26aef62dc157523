package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Script is how a Pod behaves on its node. The zero value is a Pod that is ready at once
// and runs until it is deleted.
type Script struct {
	// Never keeps the Pod Pending, as an image that can't be pulled would.
	Never bool
	// ReadyAfter is how long its containers take to start and become ready.
	ReadyAfter time.Duration
	// Runs is how long its containers run once they are ready. Zero means until the Pod is
	// deleted, except for Pods whose restart policy is not Always, such as those of Jobs and
	// of Helm's chart tests, which complete at once.
	Runs time.Duration
	// ExitCode is the code they exit with. The Pod's restart policy decides whether they
	// start again, after the same back-off as a kubelet's: 10 seconds, doubling each time,
	// up to five minutes.
	ExitCode int32
	// StopsAfter is how long its containers take to exit when the Pod is deleted, but no
	// longer than its grace period.
	StopsAfter time.Duration
}

// Pauses between restarts, as a kubelet makes them.
const (
	firstPause = 10 * time.Second
	maxPause   = 5 * time.Minute
)

// ends reports whether the Pod's containers end by themselves.
func (s Script) ends(pod *corev1.Pod) bool {
	return s.Runs > 0 || s.ExitCode != 0 || pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
}

// restarts reports whether containers that have ended start again.
func (s Script) restarts(pod *corev1.Pod) bool {
	switch pod.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return s.ExitCode != 0
	default:
		return true
	}
}
