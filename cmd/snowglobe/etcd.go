package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"google.golang.org/grpc/grpclog"

	"snowglobe.test/cmd/snowglobe/etcdmain"
	"snowglobe.test/fakes/etcd"
	"snowglobe.test/internal/unixsocket"
)

func newEtcd() *cobra.Command {
	listen := "127.0.0.1:2379"
	var secure transport.TLSInfo
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "Serve the in-memory etcd on loopback until Ctrl-C",
		Long: `Serve an empty in-memory etcd over gRPC, as a real one would on its client URL: on
loopback only, and gone when the process ends. etcdctl can talk to it, and so can a
kube-apiserver or "snowglobe up --store". Ctrl-C stops it.

On a port, every user of this machine can read and write all of it, as with a real etcd
without TLS: whoever writes the store of an API server is its admin. A unix socket is for
your user alone, whatever the umask is; a folder in which other users could put a socket
of theirs in its place is refused. Where it must be a port, --cert-file and --key-file turn
TLS on, and --client-cert-auth with --trusted-ca-file admits clients with a certificate of
that authority only.`,
		Example: `  snowglobe etcd --listen unix://$PWD/etcd.sock
  snowglobe etcd --listen 127.0.0.1:0     # a free port; the first line printed tells it
  snowglobe etcd --cert-file server.crt --key-file server.key --client-cert-auth --trusted-ca-file ca.crt`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address, err := etcdAddress(listen)
			if err != nil {
				return err
			}
			if err := etcdmain.CheckTLS(secure); err != nil {
				return err
			}
			if address.Network() == "unix" && !secure.Empty() {
				return errors.New("a unix socket has no TLS, and is for your user alone without it; leave the files out")
			}
			onlyGRPCErrors() // a client that dies is worth no warning
			return failed(serveEtcd(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), address, secure))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&listen, "listen", listen, "loopback `address` to serve on, with a port, or unix:// and the path of a socket; port 0 picks a free one")
	flags.StringVar(&secure.CertFile, "cert-file", "", "serve TLS with the certificate in this `file`")
	flags.StringVar(&secure.KeyFile, "key-file", "", "the `file` of that certificate's key")
	flags.StringVar(&secure.TrustedCAFile, "trusted-ca-file", "", "admit only clients with a certificate of the authority in this `file`")
	flags.BoolVar(&secure.ClientCertAuth, "client-cert-auth", false, "admit only clients with a certificate; needs --trusted-ca-file, which implies it")
	return cmd
}

// onlyGRPCErrors replaces gRPC's logger, as upstream's storage does as soon as it is used.
func onlyGRPCErrors() {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, os.Stderr))
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
		return nil, fmt.Errorf("--listen %q is not on loopback; give an address like 127.0.0.1:2379", listen)
	}
	return address, nil
}

const unixScheme = "unix://"

// listenEtcd opens the listener of an etcd, and returns what its clients call it.
func listenEtcd(ctx context.Context, address net.Addr, secure *tls.Config) (listener net.Listener, endpoint string, err error) {
	if ctx.Err() != nil { // which a listener may overlook
		return nil, "", context.Cause(ctx)
	}
	if address.Network() == "unix" {
		listener, err = unixsocket.Listen(ctx, address.String())
	} else {
		listener, err = (&net.ListenConfig{}).Listen(ctx, address.Network(), address.String())
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, "", fmt.Errorf("listen on %s: address already in use; choose another with --listen", address)
	case err != nil:
		return nil, "", fmt.Errorf("listen on %s: %w", address, err)
	case address.Network() == "unix":
		return listener, unixScheme + listener.Addr().String(), nil
	case secure != nil:
		return tls.NewListener(listener, secure), "https://" + listener.Addr().String(), nil
	}
	return listener, "http://" + listener.Addr().String(), nil
}

// serveEtcd serves an in-memory etcd until the context ends.
func serveEtcd(ctx context.Context, stdout, stderr io.Writer, address net.Addr, files transport.TLSInfo) error {
	secure, err := etcdmain.TLS(files)
	if err != nil {
		return err
	}
	listener, endpoint, err := listenEtcd(ctx, address, secure)
	if err != nil {
		return err
	}
	server, err := etcd.New(etcd.Config{Endpoint: endpoint})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	_, err = fmt.Fprintf(stdout, `etcd in memory is up at %s

    export ETCDCTL_ENDPOINTS=%[1]s
    etcdctl put flake falls
    etcdctl get --prefix ''
    etcdctl watch --prefix ''

%s
Ctrl-C stops it and forgets everything.
`, endpoint, etcdDoor(address, files))
	if err != nil {
		err = errors.Join(err, server.Close())
		<-served
		return err
	}
	select {
	case <-ctx.Done():
		err := server.Close()
		<-served // if it had not begun, it says that the server is closed
		fmt.Fprintln(stderr, "snowglobe: stopped")
		return err
	case err := <-served:
		return verdict(errors.Join(err, server.Close()))
	}
}

// etcdDoor says who can connect.
func etcdDoor(address net.Addr, files transport.TLSInfo) string {
	switch {
	case address.Network() == "unix":
		return "Only your user can connect."
	case files.TrustedCAFile != "":
		return "Only clients with a certificate of the authority in " + files.TrustedCAFile + " can connect."
	}
	return "Every user of this machine can read and write it; --listen unix://FILE is for you alone."
}
