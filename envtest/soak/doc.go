// Package soak has the tests of envtest that take minutes or look at all of their process.
// They have a build tag, so that go test ./... leaves them out:
//
//	go test -tags soak ./envtest/soak
package soak
