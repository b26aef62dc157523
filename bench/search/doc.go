// Package search measures how well each strategy of sim mode finds bugs that only some interleavings show. It
// takes programs that somebody else has written, known bugs of well-known projects, builds them in sim mode in a
// module of their own, and runs each under one seed after another until it fails. It copies no program: whoever
// runs it has them.
//
// MeasureTests does the same with tests of any packages, to see how many can run in a bubble, and what fails there.
package search
