//go:build unix

package own

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Check refuses what belongs to another user than this one and root.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return checkOwner(path, info)
}

func checkOwner(path string, info fs.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user, with id %d", path, owner.Uid)
	}
	return nil
}
