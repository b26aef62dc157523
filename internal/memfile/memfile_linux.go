package memfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// inMemory returns a file in memory, nil if there can't be one.
func inMemory(what string, content []byte) *os.File {
	fd, err := unix.MemfdCreate(what, unix.MFD_CLOEXEC)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), what)
	if _, err := f.Write(content); err != nil {
		_ = f.Close()
		return nil
	}
	return f
}
