// Package soak has the tests of envtest that take minutes or look at all of their
// process. They run beside the others, in a process of their own.
package soak
