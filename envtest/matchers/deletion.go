package matchers

import (
	"fmt"
	"slices"
	"time"

	"github.com/onsi/gomega/types"
)

// HaveFinalizer matches an object with a finalizer of this name.
func HaveFinalizer(name string) types.GomegaMatcher {
	return objectMatcher{
		expected: "have finalizer " + name,
		match:    func(o object) (bool, error) { return slices.Contains(o.GetFinalizers(), name), nil },
		found:    finalizers,
	}
}

// BeTerminating matches an object that is being deleted but is not gone yet, because of its
// grace period or a finalizer: its deletionTimestamp is set.
func BeTerminating() types.GomegaMatcher {
	return objectMatcher{
		expected: "be terminating",
		match:    func(o object) (bool, error) { return o.GetDeletionTimestamp() != nil, nil },
		found: func(o object) string {
			deletion := "no deletionTimestamp"
			if t := o.GetDeletionTimestamp(); t != nil {
				deletion = "deletionTimestamp " + t.Format(time.RFC3339)
			}
			return fmt.Sprintf("%s and %s", deletion, finalizers(o))
		},
	}
}

func finalizers(o object) string {
	return list("finalizers", o.GetFinalizers())
}
