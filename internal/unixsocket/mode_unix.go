//go:build unix

package unixsocket

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func chmod(descriptor uintptr, mode fs.FileMode) error {
	return syscall.Fchmod(int(descriptor), uint32(mode))
}

// othersWrite is the permission of everybody to add and remove what is in a folder.
const othersWrite fs.FileMode = 0o002

func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if info.Mode()&othersWrite != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("every user of this machine can replace what is in folder %s; choose another folder, or run: chmod o-w %[1]s", folder)
	}
	return nil
}

func checkOwner(path string, info fs.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user, with id %d", path, owner.Uid)
	}
	return nil
}
