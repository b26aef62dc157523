package conformance

import (
	"errors"
	"fmt"
	"slices"
	"text/template"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gcustom"
	gomegatypes "github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// beStatus matches an API server's error with a code and a reason.
func beStatus(code int32, reason metav1.StatusReason) gomegatypes.GomegaMatcher {
	return gcustom.MakeMatcher(func(actual any) (bool, error) {
		status := statusOf(actual)
		return status.Code == code && status.Reason == reason, nil
	}).WithPrecompiledTemplate(statusMessage, fmt.Sprint(code, " ", reason))
}

var statusMessage = template.Must(template.New("").Funcs(template.FuncMap{"describe": describe}).Parse(
	"Expected the server {{.To}} answer {{.Data}}, but got {{describe .Actual}}"))

// statusOf returns the Status of an API server's error, an empty one for anything else.
func statusOf(actual any) metav1.Status {
	var status apierrors.APIStatus
	if err, _ := actual.(error); errors.As(err, &status) {
		return status.Status()
	}
	return metav1.Status{}
}

func describe(actual any) string {
	if actual == nil {
		return "no error"
	}
	if status := statusOf(actual); status.Code != 0 {
		return fmt.Sprintf("%d %s: %v", status.Code, status.Reason, actual)
	}
	return fmt.Sprint("an error that is not an answer: ", actual)
}

// beSorted matches a slice of strings in ascending order.
func beSorted() gomegatypes.GomegaMatcher {
	return gomega.WithTransform(slices.IsSorted[[]string], gomega.BeTrue())
}
