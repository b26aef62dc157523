package conformance

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// beStatus matches an API server's error with a code and a reason.
func beStatus(code int32, reason metav1.StatusReason) gomegatypes.GomegaMatcher {
	return &statusMatcher{code: code, reason: reason}
}

type statusMatcher struct {
	code   int32
	reason metav1.StatusReason
}

// Match implements types.GomegaMatcher.
func (m *statusMatcher) Match(actual any) (bool, error) {
	err, ok := actual.(error)
	if !ok {
		return false, nil // the server answered without an error
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false, nil
	}
	return status.Status().Code == m.code && status.Status().Reason == m.reason, nil
}

// FailureMessage implements types.GomegaMatcher.
func (m *statusMatcher) FailureMessage(actual any) string {
	return fmt.Sprintf("Expected the server to answer %d %s, but got %s", m.code, m.reason, describe(actual))
}

// NegatedFailureMessage implements types.GomegaMatcher.
func (m *statusMatcher) NegatedFailureMessage(actual any) string {
	return fmt.Sprintf("Expected the server not to answer %d %s, but got %s", m.code, m.reason, describe(actual))
}

func describe(actual any) string {
	err, ok := actual.(error)
	if !ok {
		return "no error"
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Sprintf("%d %s: %v", status.Status().Code, status.Status().Reason, err)
	}
	return "an error that is not an answer: " + err.Error()
}

// beSorted matches a slice of strings in ascending order.
func beSorted() gomegatypes.GomegaMatcher {
	return gomega.WithTransform(slices.IsSorted[[]string], gomega.BeTrue())
}
