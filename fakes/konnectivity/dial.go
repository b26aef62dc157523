package konnectivity

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client"
)

// DialConnect returns a function that dials through a proxy of HTTP CONNECT, as an
// egress selector does. Upstream's egress selector itself reaches its proxy only over
// sockets; in memory, and so in virtual time, egressselector.NewEgressSelectorWithMap
// takes this function. Reach connects to the proxy, TLS included.
func DialConnect(reach func(ctx context.Context) (net.Conn, error)) DialFunc {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		conn, err := reach(ctx)
		if err != nil {
			return nil, err
		}
		if err := connect(ctx, conn, address); err != nil {
			return nil, errors.Join(fmt.Errorf("dial %s through HTTP CONNECT: %w", address, err), conn.Close())
		}
		return conn, nil
	}
}

// connect asks for a tunnel. The context's end closes the connection.
func connect(ctx context.Context, conn net.Conn, address string) (err error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		if !stop() {
			err = context.Cause(ctx)
		}
	}()
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Host: address}, Host: address}
	if err := request.Write(conn); err != nil {
		return err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy answers %s", response.Status)
	}
	if reader.Buffered() > 0 {
		return errors.New("the target has spoken first, which upstream doesn't allow for either")
	}
	return nil
}

// DialGRPC returns a function that dials through konnectivity's gRPC with upstream's
// client, as an egress selector does. Reach connects to the proxy.
func DialGRPC(reach func(ctx context.Context) (net.Conn, error)) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		tunnel, err := client.CreateSingleUseGrpcTunnelWithContext(ctx, context.WithoutCancel(ctx), "passthrough:///konnectivity",
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return reach(ctx) }),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, fmt.Errorf("reach the proxy: %w", err)
		}
		return tunnel.DialContext(ctx, network, address)
	}
}
