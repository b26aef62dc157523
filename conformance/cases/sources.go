// Package cases has the source of the cases, which are in the packages below it, one for each
// area, so that a report of a failure can quote it.
package cases

import "embed"

// Sources are the files of the cases, each in the folder of its area.
//
//go:embed */*.go
var Sources embed.FS
