package stub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"snowglobe.test/internal/pki"
)

// goodbye is how long an HTTP/2 connection stays open when the server stops and no
// stream is left. net/http reports the end of a stream before it has sent the last of
// it, and would itself wait a second.
const goodbye = 10 * time.Millisecond

// ErrStopped is the cause that ends the contexts of requests when the server stops.
var ErrStopped = errors.New("the fake has been stopped")

// Server serves a fake on a listener, in memory or not, until it is stopped.
type Server struct {
	server *http.Server
	url    url.URL
	ca     []byte
	done   chan struct{} // closed when nothing accepts connections anymore
	failed error         // why, if the server was not stopped; set before done

	// The requests' contexts, which end when they are broken off.
	ctx      context.Context
	breakOff context.CancelCauseFunc

	mu       sync.Mutex
	stopping bool
	conns    []*conn       // all that are open, hijacked ones included
	busy     int           // connections that net/http serves, and handlers that run
	idled    chan struct{} // has an element when a connection has become idle
	drained  chan struct{} // closed when the server is stopping and busy is 0
}

// Serve serves plain HTTP. The listener is the server's from now on.
func Serve(l net.Listener, handler http.Handler) *Server {
	s := newServer(l, "http", nil)
	s.begin(&listener{l, s}, handler)
	return s
}

// ServeTLS serves HTTPS, HTTP/2 included, with a certificate for the hosts, each a DNS
// name or an IP, that the authority of CA has signed. Without hosts it is for the host
// of the listener. Clients may show a certificate of any authority; the handler finds
// it in the request. The listener is the server's from now on, also if ServeTLS fails.
func ServeTLS(l net.Listener, handler http.Handler, hosts ...string) (*Server, error) {
	authority, err := pki.NewAuthority("fake")
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return ServeTLSBy(authority.Certify, l, handler, hosts...)
}

// Certify makes a serving certificate for hosts, and returns with it that of its authority, in PEM.
type Certify func(hosts ...string) (serving tls.Certificate, ca []byte, err error)

// ServeTLSBy is ServeTLS with a certificate of an authority that exists.
func ServeTLSBy(certify Certify, l net.Listener, handler http.Handler, hosts ...string) (*Server, error) {
	s := newServer(l, "https", hosts)
	if len(hosts) == 0 {
		hosts = []string{s.url.Hostname()}
	}
	certificate, ca, err := certify(hosts...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("certificate of the fake: %w", err), l.Close())
	}
	s.ca = ca
	s.begin(tls.NewListener(&listener{l, s}, &tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequestClientCert,
		NextProtos:   []string{"h2", "http/1.1"},
		MinVersion:   tls.VersionTLS12,
	}), handler)
	return s, nil
}

func newServer(l net.Listener, scheme string, hosts []string) *Server {
	ctx, breakOff := context.WithCancelCause(context.Background())
	return &Server{
		url:      url.URL{Scheme: scheme, Host: address(l, hosts)},
		done:     make(chan struct{}),
		ctx:      ctx,
		breakOff: breakOff,
		idled:    make(chan struct{}, 1),
		drained:  make(chan struct{}),
	}
}

// address is the host of URL, with a port if the listener has one.
func address(l net.Listener, hosts []string) string {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil { // a Unix socket has a path
		host, port = "localhost", "0"
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() || host == "" {
		host = "127.0.0.1"
	}
	if len(hosts) > 0 {
		host = hosts[0]
	}
	if port != "0" {
		return net.JoinHostPort(host, port)
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return "[" + host + "]"
	}
	return host
}

func (s *Server) begin(l net.Listener, handler http.Handler) {
	s.server = &http.Server{
		Handler:           s.count(handler),
		ReadHeaderTimeout: time.Minute,
		ConnState:         s.setState,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ErrorLog:          log.New(io.Discard, "", 0), // clients that leave are no news
	}
	go func() {
		defer close(s.done)
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed = fmt.Errorf("serve a fake on %s: %w", l.Addr(), err)
		}
	}()
}

// URL is where the fake is, such as https://127.0.0.1:40123, with the first of the
// hosts that it was given. There is no port if the listener has none, as one in memory
// does: then a dialer has to lead this host to the listener.
func (s *Server) URL() string { return s.url.String() }

// CA is the certificate, in PEM, that clients trust. It is nil without TLS.
func (s *Server) CA() []byte { return s.ca }

// Stop closes the listener and waits until the requests in flight have been answered.
// When the context ends, it breaks off those that are left, and returns an error.
// Connections that were hijacked from the server are closed at once. Nothing that the
// server started is left when Stop returns, so it also waits for handlers that ignore the
// end of their context. Stop may be called again.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	// Shutdown would poll until connections are idle. With a context that has ended it does all
	// the rest, and drain waits instead.
	over, cancel := context.WithCancel(context.Background())
	cancel()
	err := s.server.Shutdown(over)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	<-s.done
	s.mu.Lock()
	s.tell()
	s.mu.Unlock()
	return errors.Join(err, s.failed, s.drain(ctx))
}

// Interrupt is Stop for answers that don't end by themselves, such as watches: it ends the
// contexts of all requests first.
func (s *Server) Interrupt(ctx context.Context) error {
	s.breakOff(ErrStopped)
	return s.Stop(ctx)
}

// drain closes the connections whose requests have been answered, until none is left or
// the context ends; then it closes all.
func (s *Server) drain(ctx context.Context) error {
	for {
		var later <-chan time.Time
		if s.closeConns((*conn).over); s.any((*conn).parting) {
			later = time.After(goodbye)
		}
		select {
		case <-s.drained:
			return nil
		case <-s.idled:
		case <-later:
		case <-ctx.Done():
			// Connections are closed first. Else a handler could still answer that its context ended.
			s.closeConns(func(*conn) bool { return true })
			s.breakOff(ErrStopped)
			<-s.drained
			return fmt.Errorf("stop a fake: requests that were not answered yet have been broken off: %w", context.Cause(ctx))
		}
	}
}
