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

// Refusal is the code and the reason with which an API server refuses a request.
type Refusal struct {
	Code   int
	Reason metav1.StatusReason
}

// The refusals that cases expect.
var (
	BadRequest       = Refusal{http.StatusBadRequest, metav1.StatusReasonBadRequest}
	Unauthorized     = Refusal{http.StatusUnauthorized, metav1.StatusReasonUnauthorized}
	Forbidden        = Refusal{http.StatusForbidden, metav1.StatusReasonForbidden}
	NotFound         = Refusal{http.StatusNotFound, metav1.StatusReasonNotFound}
	MethodNotAllowed = Refusal{http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed}
	NotAcceptable    = Refusal{http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable}
	AlreadyExists    = Refusal{http.StatusConflict, metav1.StatusReasonAlreadyExists}
	Conflict         = Refusal{http.StatusConflict, metav1.StatusReasonConflict}
	Expired          = Refusal{http.StatusGone, metav1.StatusReasonExpired}
	TooLarge         = Refusal{http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge}
	UnsupportedMedia = Refusal{http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType}
	Invalid          = Refusal{http.StatusUnprocessableEntity, metav1.StatusReasonInvalid}
	TooMany          = Refusal{http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests}
	Unknown          = Refusal{http.StatusInternalServerError, metav1.StatusReasonUnknown}
	InternalError    = Refusal{http.StatusInternalServerError, metav1.StatusReasonInternalError}
	Unreadable       = Refusal{http.StatusInternalServerError, metav1.StatusReasonStoreReadError}
	Unavailable      = Refusal{http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable}
	Timeout          = Refusal{http.StatusGatewayTimeout, metav1.StatusReasonTimeout}
)

// BeStatus matches an API server's error that is a refusal.
func BeStatus(want Refusal) gomegatypes.GomegaMatcher {
	return gcustom.MakeMatcher(func(actual any) (bool, error) {
		status := StatusOf(actual)
		return int(status.Code) == want.Code && status.Reason == want.Reason, nil
	}).WithPrecompiledTemplate(statusMessage, fmt.Sprint(want.Code, " ", want.Reason))
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
	t.Expect(err).To(BeStatus(Invalid))
	var fields []string
	if details := StatusOf(err).Details; details != nil {
		for _, cause := range details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}
