// Package filters has the cases about what every request passes on its way to a resource, and
// about the limits of a server. Where a server must be full, rules hold requests at the store,
// so that it stays full.
package filters

import (
	"slices"
	"strings"
)

// Cases are the cases of this area.
var Cases = slices.Concat(limitCases, headerCases, fairnessCases)

// large is a text of so many kilobytes.
func large(kilobytes int) string { return strings.Repeat("0123456789abcdef", kilobytes*64) }
