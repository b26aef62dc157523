//go:build !linux

package disktest

import "testing"

// Small skips the test: only Linux has namespaces in which everybody may make a disk.
func Small(t *testing.T, _ int, _ func(dir string, readOnly func())) {
	t.Helper()
	t.Skip("a disk of the test's own needs Linux")
}
