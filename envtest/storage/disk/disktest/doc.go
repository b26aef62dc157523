// Package disktest gives tests disks that are small, full or read-only.
package disktest

import (
	"os"
	"path/filepath"
	"testing"
)

// Fill leaves so many bytes of a disk free, give or take a page, and returns what frees the
// rest again.
func Fill(t testing.TB, dir string, leave int) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	ballast, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	size := 0
	for {
		n, err := ballast.Write(block)
		size += n
		if err != nil {
			break
		}
	}
	if err := ballast.Truncate(int64(max(0, size-leave))); err != nil {
		t.Fatal(err)
	}
	if err := ballast.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Left lists what is in a folder.
func Left(t testing.TB, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	return names
}
