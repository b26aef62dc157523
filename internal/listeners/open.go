package listeners

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The modes of a unix socket that is its owner's alone, and of the folder it is in.
const (
	socketMode fs.FileMode = 0o600
	folderMode fs.FileMode = 0o700
)

// OpenToOthers says how users of the machine other than the process' own can connect, and
// returns "" if they can't. A unix socket is closed to them if its file has mode 0600 and
// is in a folder of mode 0700; either alone would do, until the user changes it.
func (l Listener) OpenToOthers() (string, error) {
	if l.Network != Unix {
		return fmt.Sprintf("%s: any user of this machine can connect", l), nil
	}
	socket, err := os.Lstat(l.Address)
	if err != nil {
		return "", err
	}
	folder, err := os.Stat(filepath.Dir(l.Address))
	if err != nil {
		return "", err
	}
	if socket.Mode().Perm() != socketMode || folder.Mode().Perm() != folderMode {
		return fmt.Sprintf("%s: the socket has mode %04o and its folder %04o, not %04o and %04o",
			l, socket.Mode().Perm(), folder.Mode().Perm(), socketMode, folderMode), nil
	}
	return "", nil
}
