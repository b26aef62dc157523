// Package etcdmain is the program etcd, of one member and in memory: its flags, the doors they
// open, and what its users look for behind them.
package etcdmain

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/pkg/v3/debugutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"snowglobe.test/fakes/etcd"
	"snowglobe.test/internal/unixsocket"
)

// Run is etcd until the context ends. An error about flags is a FlagError.
func Run(ctx context.Context, args []string, stdout, _ io.Writer) error {
	flags := newFlags(stdout)
	config, err := flags.parse(args)
	if config == nil || err != nil {
		return err
	}
	return (&program{config: config, log: config.GetLogger()}).run(ctx)
}

// program is an etcd that runs.
type program struct {
	config  *embed.Config
	log     *zap.Logger
	server  *etcd.Server
	gateway *gateway // nil without one
	doors   []*doorway
}

// doorway is a listener, for HTTP alone or for everything.
type doorway struct {
	net.Listener
	url      url.URL
	httpOnly bool
}

// run serves until the context ends.
func (e *program) run(ctx context.Context) (err error) {
	if err := e.open(ctx); err != nil {
		return errors.Join(err, e.closeDoors())
	}
	if err := e.newServer(); err != nil {
		return errors.Join(err, e.closeDoors())
	}
	stopCompaction, err := e.compact()
	if err != nil {
		return errors.Join(err, e.gateway.close(), e.server.Close(), e.closeDoors())
	}
	ended := make(chan error, len(e.doors)+1)
	running := len(e.doors)
	for _, door := range e.doors {
		go func() { ended <- e.serve(door) }()
	}
	if e.gateway != nil {
		running++
		go func() { ended <- e.server.Serve(e.gateway.listener) }()
	}
	e.announce()
	var errs []error
	select {
	case <-ctx.Done():
		e.log.Info("closing etcd server")
	case err := <-ended:
		running--
		errs = append(errs, err)
	}
	stopCompaction()
	errs = append(errs, e.gateway.close(), e.server.Close(), e.closeDoors())
	for range running {
		errs = append(errs, notClosed(<-ended))
	}
	return errors.Join(errs...)
}

// notClosed drops what a server says whose listener was closed.
func notClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// open opens all listeners that flags ask for.
func (e *program) open(ctx context.Context) error {
	secure, err := e.tls()
	if err != nil {
		return err
	}
	for _, list := range []struct {
		flag     string
		urls     []url.URL
		httpOnly bool
	}{
		{"listen-client-urls", e.config.ListenClientUrls, false},
		{"listen-client-http-urls", e.config.ListenClientHttpUrls, true},
		{"listen-metrics-urls", e.config.ListenMetricsUrls, true},
	} {
		for _, at := range list.urls {
			listener, err := listenURL(ctx, at, secure)
			if err != nil {
				return fmt.Errorf("--%s %s: %w", list.flag, &at, err)
			}
			e.doors = append(e.doors, &doorway{listener, at, list.httpOnly})
		}
	}
	return nil
}

// listenURL opens a listener: as all of Snowglobe, on loopback or a socket.
func listenURL(ctx context.Context, at url.URL, secure *tls.Config) (net.Listener, error) {
	if encrypted(at) && secure == nil {
		return nil, fmt.Errorf("%s needs --cert-file and --key-file, or --auto-tls", at.Scheme)
	}
	listener, err := listenPlain(ctx, at)
	if err != nil || !encrypted(at) {
		return listener, err
	}
	return tls.NewListener(listener, secure), nil
}

func listenPlain(ctx context.Context, at url.URL) (net.Listener, error) {
	if at.Scheme == "unix" || at.Scheme == "unixs" {
		return unixsocket.Listen(ctx, at.Host+at.Path)
	}
	address, err := net.ResolveTCPAddr("tcp", at.Host)
	switch {
	case err != nil:
		return nil, err
	case !address.IP.IsLoopback():
		return nil, errors.New("it is not on loopback; use 127.0.0.1")
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address.String())
}

func (e *program) closeDoors() error {
	var errs []error
	for _, door := range e.doors {
		errs = append(errs, notClosed(door.Close()))
	}
	return errors.Join(errs...)
}

// newServer makes the server that flags ask for.
func (e *program) newServer() (err error) {
	c := e.config
	config := etcd.Config{
		MaxRequestBytes: int(c.MaxRequestBytes), MaxTxnOps: int(c.MaxTxnOps), QuotaBytes: c.QuotaBackendBytes,
		ProgressNotifyInterval: c.WatchProgressNotifyInterval, Endpoint: e.doors[0].url.String(), Name: c.Name,
		PeerURLs:   types.URLs(c.AdvertisePeerUrls).StringSlice(),
		ClientURLs: types.URLs(c.AdvertiseClientUrls).StringSlice(),
		ServerOptions: []grpc.ServerOption{
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: c.GRPCKeepAliveMinTime}),
			grpc.MaxConcurrentStreams(c.MaxConcurrentStreams),
		},
	}
	if c.GRPCKeepAliveInterval > 0 && c.GRPCKeepAliveTimeout > 0 {
		config.ServerOptions = append(config.ServerOptions,
			grpc.KeepaliveParams(keepalive.ServerParameters{Time: c.GRPCKeepAliveInterval, Timeout: c.GRPCKeepAliveTimeout}))
	}
	pages := http.NewServeMux()
	if c.EnablePprof {
		for path, handler := range debugutil.PProfHandlers() {
			pages.Handle(path, handler)
		}
	}
	if c.EnableGRPCGateway {
		if e.gateway, err = newGateway(); err != nil {
			return err
		}
		pages.Handle("/v3/", e.gateway)
	}
	config.HTTP = pages
	if e.server, err = etcd.New(config); err != nil {
		return errors.Join(err, e.gateway.close())
	}
	return nil
}

// serve serves on a listener until it is closed.
func (e *program) serve(door *doorway) error {
	if !door.httpOnly {
		return e.server.Serve(door.Listener)
	}
	pages := &http.Server{Handler: e.server, ReadHeaderTimeout: time.Minute, ErrorLog: zap.NewStdLog(zap.NewNop())}
	return errors.Join(notClosed(pages.Serve(door.Listener)), pages.Close())
}

// announce says in the original's words, for which programs wait, that clients are served.
func (e *program) announce() {
	for _, door := range e.doors {
		says := "serving client traffic securely"
		if door.url.Scheme == "http" || door.url.Scheme == "unix" {
			says = "serving client traffic insecurely; this is strongly discouraged!"
		}
		e.log.Info(says, zap.String("traffic", "grpc+http"), zap.String("address", door.Addr().String()))
	}
	e.log.Info("ready to serve client requests")
}

// tls is the TLS that flags give the client URLs, nil for none.
func (e *program) tls() (*tls.Config, error) {
	info, err := clientTLS(e.config)
	if err != nil {
		return nil, err
	}
	return TLS(info)
}

// securely reports whether any client URL wants TLS. Without, flags about it have no effect.
func securely(config *embed.Config) bool {
	all := slices.Concat(config.ListenClientUrls, config.ListenClientHttpUrls, config.ListenMetricsUrls)
	return slices.ContainsFunc(all, encrypted)
}

func encrypted(at url.URL) bool { return at.Scheme == "https" || at.Scheme == "unixs" }
