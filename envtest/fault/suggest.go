package fault

import (
	"fmt"

	"snowglobe.test/internal/nearest"
)

// maxListed is how many known names suggest lists if none is near.
const maxListed = 24

// suggest is the end of a message about an unknown name: the nearest known
// ones, or all of them if none is near.
func suggest(name string, known []string) string {
	if near := nearest.DidYouMean(name, known); near != "" {
		return near
	}
	if len(known) > maxListed {
		return fmt.Sprintf("; there are %d, and none is like it", len(known))
	}
	return "; there is " + nearest.Either(known)
}
