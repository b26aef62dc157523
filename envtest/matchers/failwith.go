package matchers

import (
	"errors"
	"fmt"

	"github.com/onsi/gomega/format"
	"github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FailWith matches the error of a request that the API server answered with this reason,
// wrapped or not. Success does not match, and neither does an error that is not an answer,
// such as a lost connection.
func FailWith(reason metav1.StatusReason) types.GomegaMatcher {
	return failMatcher{reason}
}

type failMatcher struct {
	reason metav1.StatusReason
}

func (m failMatcher) Match(actual any) (bool, error) {
	if actual == nil {
		return false, nil
	}
	err, ok := actual.(error)
	if !ok {
		return false, fmt.Errorf("fail with %s: want an error, got\n%s", name(m.reason), format.Object(actual, 1))
	}
	return isAnswer(err) && apierrors.ReasonForError(err) == m.reason, nil
}

func (m failMatcher) FailureMessage(actual any) string {
	return m.message(actual, "to")
}

func (m failMatcher) NegatedFailureMessage(actual any) string {
	return m.message(actual, "not to")
}

func (m failMatcher) message(actual any, to string) string {
	outcome := "It succeeded"
	if err, ok := actual.(error); ok {
		outcome = "It failed without an answer of the API server"
		if isAnswer(err) {
			outcome = "It failed with " + name(apierrors.ReasonForError(err))
		}
		outcome += fmt.Sprintf(": %v", err)
	}
	return fmt.Sprintf("Expected the request %s fail with %s.\n%s", to, name(m.reason), outcome)
}

// isAnswer reports whether an error is what the API server answered.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// name is a reason in a message; StatusReasonUnknown is an empty text.
func name(reason metav1.StatusReason) string {
	if reason == metav1.StatusReasonUnknown {
		return "no reason"
	}
	return string(reason)
}
