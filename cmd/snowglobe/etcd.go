package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/grpclog"

	"snowglobe.test/fakes/etcd"
)

func newEtcd() *cobra.Command {
	listen := "127.0.0.1:2379"
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "Serve the in-memory etcd on loopback until Ctrl-C",
		Long: `Serve an empty in-memory etcd over gRPC, as a real one would on its client URL:
without TLS, on loopback only, and gone when the process ends. etcdctl can talk to
it, and so can a kube-apiserver or "snowglobe up --store". Ctrl-C stops it.`,
		Example: `  snowglobe etcd
  snowglobe etcd --listen 127.0.0.1:0     # a free port; the first line printed tells it
  snowglobe etcd --listen unix://$PWD/etcd.sock`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address, err := etcdAddress(listen)
			if err != nil {
				return err
			}
			// gRPC's default, which upstream's storage replaces as soon as it is
			// linked: a client that dies is worth no warning.
			grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, os.Stderr))
			return failed(serveEtcd(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), address))
		},
	}
	cmd.Flags().StringVar(&listen, "listen", listen, "loopback `address` to serve on, with a port, or unix:// and the path of a socket; port 0 picks a free one")
	return cmd
}

// etcdAddress reads the value of --listen: a TCP address of loopback or a socket.
func etcdAddress(listen string) (net.Addr, error) {
	if path, ok := strings.CutPrefix(listen, unixScheme); ok {
		return net.ResolveUnixAddr("unix", path)
	}
	address, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %q is not an address: %w; give one like 127.0.0.1:2379", listen, err)
	}
	if !address.IP.IsLoopback() {
		return nil, fmt.Errorf("--listen %q is not on loopback, and this etcd has no TLS; give an address like 127.0.0.1:2379", listen)
	}
	return address, nil
}

const unixScheme = "unix://"

// serveEtcd serves an in-memory etcd until the context ends.
func serveEtcd(ctx context.Context, stdout, stderr io.Writer, address net.Addr) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, address.Network(), address.String())
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: address already in use; choose another with --listen", address)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	endpoint := "http://" + listener.Addr().String()
	if address.Network() == "unix" {
		endpoint = unixScheme + listener.Addr().String()
	}
	server, err := etcd.New(etcd.Config{Endpoint: endpoint})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Fprintf(stdout, `etcd in memory is up at %s

    export ETCDCTL_ENDPOINTS=%[1]s
    etcdctl put flake falls
    etcdctl get --prefix ''
    etcdctl watch --prefix ''

Ctrl-C stops it and forgets everything.
`, endpoint)
	select {
	case <-ctx.Done():
		err := errors.Join(server.Close(), <-served)
		fmt.Fprintln(stderr, "snowglobe: stopped")
		return err
	case err := <-served:
		return errors.Join(err, server.Close())
	}
}
