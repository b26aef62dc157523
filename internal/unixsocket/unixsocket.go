// Package unixsocket owns how this project opens unix sockets, and connects to them: only
// the user of the process may, whatever the umask is and whoever shares the folder.
package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// mode is that of every socket: connecting takes the permission to write.
const mode fs.FileMode = 0o600

// maxPath is how many bytes the path of a socket may have.
const maxPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// checkPath names the limit, which is an invalid argument to the system.
func checkPath(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("the path of the socket has %d bytes, and %d at most are possible: %s", len(path), maxPath, path)
	}
	return nil
}

// Listen listens at a path, to which only the user of this process can connect. It
// refuses a folder in which other users could put a socket of theirs in its place.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if path == "" || strings.HasPrefix(path, "@") {
		return nil, fmt.Errorf("%q is not the path of a file; any user of this machine can connect to an abstract socket", path)
	}
	if err := errors.Join(checkPath(path), checkFolder(filepath.Dir(path))); err != nil {
		return nil, err
	}
	listener, err := config().Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// config makes the socket with its mode: Linux takes it from the descriptor when it binds.
// Other systems refuse that, and have a moment in which the umask decides.
func config() *net.ListenConfig {
	return &net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		return conn.Control(func(descriptor uintptr) { _ = chmod(descriptor, mode) })
	}}
}

// Dial connects to a socket of this user, or of root.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := checkOwner(path, info); err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "unix", path)
}
