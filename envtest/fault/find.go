package fault

import (
	"fmt"
	"slices"
	"strings"

	"snowglobe.test/internal/nearest"
)

// FindPoints returns the entries of the catalogue that a pattern is about: a
// point as a rule names it, such as store/put, http/* or hook/crd-informer-synced;
// the name of an entry, such as hook/<hook>; or a family, such as store. If there
// are none, the error has the nearest names.
func FindPoints(pattern string) ([]PointKind, error) {
	family, last, isPoint := strings.Cut(pattern, "/")
	kinds := slices.DeleteFunc(Points(), func(k PointKind) bool {
		names := k.names(nil)
		switch {
		case !glob(family, k.family()):
			return true
		case !isPoint, pattern == k.Name:
			return false
		case k.isPath():
			return true
		}
		return last == "" || names != nil && !anyGlob(last, names)
	})
	if len(kinds) > 0 {
		return kinds, nil
	}
	return nil, fmt.Errorf("no point is like %q%s", pattern, nearest.DidYouMean(pattern, pointNames()))
}

// pointNames are the families, and the points whose names are known.
func pointNames() []string {
	var names []string
	for i := range catalogue {
		k := &catalogue[i]
		names = append(append(names, k.family()), k.points(k.names(nil))...)
	}
	return names
}
