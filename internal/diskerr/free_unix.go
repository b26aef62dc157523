//go:build linux || darwin

package diskerr

import "golang.org/x/sys/unix"

// freeSpace is what an unprivileged user may still write, in bytes.
func freeSpace(folder string) (uint64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
