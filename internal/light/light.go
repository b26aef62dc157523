// Package light tells a light build of snowglobe, made with the tag snowglobe_light, from a whole one.
// A light build leaves out what takes a third of the time to compile and most runs do without:
// upstream's controllers, scheduler and kubectl, the conformance cases and the benchmarks.
package light

import "errors"

// Tag is the build tag.
const Tag = "snowglobe_light"

// ErrLeftOut is the error of what a light build can't do.
var ErrLeftOut = errors.New("this build of snowglobe leaves it out: it has the tag " + Tag)
