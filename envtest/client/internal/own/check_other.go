//go:build !unix

package own

import "os"

// Check checks that there is something: it inherits who may use it from its folder.
func Check(path string) error {
	_, err := os.Stat(path)
	return err
}
