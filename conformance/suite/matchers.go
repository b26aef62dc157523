package suite

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"text/template"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gcustom"
	gomegatypes "github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BeStatus matches an API server's error with a code and a reason.
func BeStatus(code int32, reason metav1.StatusReason) gomegatypes.GomegaMatcher {
	return gcustom.MakeMatcher(func(actual any) (bool, error) {
		status := StatusOf(actual)
		return status.Code == code && status.Reason == reason, nil
	}).WithPrecompiledTemplate(statusMessage, fmt.Sprint(code, " ", reason))
}

var statusMessage = template.Must(template.New("").Funcs(template.FuncMap{"describe": describe}).Parse(
	"Expected the server {{.To}} answer {{.Data}}, but got {{describe .Actual}}"))

// StatusOf returns the Status of an API server's error, an empty one for anything else.
func StatusOf(actual any) metav1.Status {
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
	if status := StatusOf(actual); status.Code != 0 {
		return fmt.Sprintf("%d %s: %v", status.Code, status.Reason, actual)
	}
	return fmt.Sprint("an error that is not an answer: ", actual)
}

// BeSorted matches a slice of strings in ascending order.
func BeSorted() gomegatypes.GomegaMatcher {
	return gomega.WithTransform(slices.IsSorted[[]string], gomega.BeTrue())
}

// Causes returns the fields that a 422 answer names as causes.
func (t *T) Causes(err error) []string {
	t.Expect(err).To(BeStatus(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid))
	var fields []string
	if details := StatusOf(err).Details; details != nil {
		for _, cause := range details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}
