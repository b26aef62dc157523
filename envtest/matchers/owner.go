package matchers

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BeOwnedBy matches an object with an owner reference to exactly this owner, by UID. The
// owner must have been read from, or created on, a server by the time the object is matched.
func BeOwnedBy(owner metav1.Object) types.GomegaMatcher {
	return ownerMatcher("be owned by ", owner, func(metav1.OwnerReference) bool { return true })
}

// BeControlledBy is [BeOwnedBy] for the one owner that is the object's controller.
func BeControlledBy(owner metav1.Object) types.GomegaMatcher {
	return ownerMatcher("be controlled by ", owner, isController)
}

func isController(r metav1.OwnerReference) bool {
	return r.Controller != nil && *r.Controller
}

// ownerMatcher matches by an owner reference of a certain kind.
func ownerMatcher(expected string, owner metav1.Object, counts func(metav1.OwnerReference) bool) types.GomegaMatcher {
	if _, err := as[metav1.Object](owner); err != nil {
		return objectMatcher{expected + "an owner", func(object) (bool, error) { return false, err }, owners}
	}
	return objectMatcher{
		expected: expected + describe(owner),
		match: func(o object) (bool, error) {
			if owner.GetUID() == "" {
				return false, errors.New("the owner has no UID: create it, or read it from the server")
			}
			return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
				return r.UID == owner.GetUID() && counts(r)
			}), nil
		},
		// Another owner may have had the same name.
		found: func(o object) string { return fmt.Sprintf("%s\nThe UID to find is %s", owners(o), owner.GetUID()) },
	}
}

// owners shows the owner references of an object.
func owners(o object) string {
	var lines []string
	for _, r := range o.GetOwnerReferences() {
		line := fmt.Sprintf("%s %s, UID %s", r.Kind, r.Name, r.UID)
		if isController(r) {
			line += ", controller"
		}
		lines = append(lines, line)
	}
	return list("owners", lines)
}
