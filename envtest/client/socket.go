package client

import (
	"context"
	"fmt"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"syscall"

	"snowglobe.test/envtest/client/internal/own"
)

// maxPath is how many bytes the path of a socket may have.
const maxPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// dial connects to a server of this user, or of root: any other could serve what it likes.
func dial(ctx context.Context, socket string) (*rpc.Client, error) {
	if len(socket) > maxPath {
		return nil, fmt.Errorf("the path of the socket has %d bytes, and %d at most are possible: %s", len(socket), maxPath, socket)
	}
	if err := own.Check(socket); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	return jsonrpc.NewClient(conn), nil
}
