package konnectivity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"google.golang.org/grpc"

	"snowglobe.test/fakes/stub"
	"snowglobe.test/internal/broadcast"
)

// The protocols, as an EgressSelectorConfiguration calls them.
const (
	HTTPConnect = "HTTPConnect"
	GRPC        = "GRPC"
)

// Request is what an API server wants to reach.
type Request struct {
	Protocol string // HTTPConnect or GRPC
	Address  string // host and port
	// User and Groups are the common name and the organizations of the client's
	// certificate, if the proxy serves TLS.
	User   string
	Groups []string
	Header http.Header // of HTTP CONNECT
}

// DialFunc reaches an address, like net.Dialer's DialContext. The context is only about
// the dialing.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Answer is how an address is reached.
type Answer struct {
	Dial DialFunc
	// BreakAfter breaks the tunnel off when so many bytes have gone through it, in both
	// directions together. 0 means never.
	BreakAfter int64
}

// Proxy is a proxy that may serve on several listeners.
type Proxy struct {
	// Dials decides, dial by dial, and records.
	Dials *stub.Table[Request, Answer]

	mu      sync.Mutex
	down    error // why nothing can be reached: errCut or stub.ErrStopped
	servers []*stub.Server
	grpc    []*grpc.Server
	serves  sync.WaitGroup // goroutines of gRPC
	tunnels []*tunnel      // in the order of their requests
	changed broadcast.News // of a tunnel that closes
}

// New returns a proxy that has no routes and serves nowhere.
func New() *Proxy {
	p := &Proxy{}
	p.Dials = stub.NewTable(func(_ context.Context, r Request) (Answer, error) {
		return Answer{}, fmt.Errorf("no route leads to %s: add one with Proxy.Route", r.Address)
	})
	return p
}

// Route reaches the addresses that match the pattern with the function. In a pattern,
// such as "*.svc:443", * stands for any characters. Later routes go before earlier
// ones. Remove takes the route out again.
func (p *Proxy) Route(pattern string, dial DialFunc) (remove func()) {
	return p.use(pattern, func(context.Context, Request) (Answer, error) { return Answer{Dial: dial}, nil })
}

// Refuse refuses to dial the addresses that match the pattern.
func (p *Proxy) Refuse(pattern string) (remove func()) {
	return p.use(pattern, func(_ context.Context, r Request) (Answer, error) {
		return Answer{}, fmt.Errorf("dial %s: connection refused", r.Address)
	})
}

// Hang dials the addresses that match the pattern for as long as the client waits.
func (p *Proxy) Hang(pattern string) (remove func()) {
	return p.use(pattern, func(ctx context.Context, r Request) (Answer, error) {
		<-ctx.Done()
		return Answer{}, fmt.Errorf("dial %s: %w", r.Address, context.Cause(ctx))
	})
}

func (p *Proxy) use(pattern string, answer func(context.Context, Request) (Answer, error)) (remove func()) {
	matching := regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
	return p.Dials.Use(stub.Rule[Request, Answer]{
		Name:   pattern,
		When:   func(r Request) bool { return matching.MatchString(r.Address) },
		Answer: answer,
	})
}

// ServeConnect serves HTTP CONNECT in plain text, as over a Unix socket. The listener
// is the proxy's from now on.
func (p *Proxy) ServeConnect(l net.Listener) {
	p.keep(stub.Serve(l, http.HandlerFunc(p.connect)))
}

// ServeConnectTLS serves HTTP CONNECT over TLS, with a certificate for the hosts, each
// a DNS name or an IP, that the authority of ca, in PEM, has signed. The listener is
// the proxy's from now on, also if that fails.
func (p *Proxy) ServeConnectTLS(l net.Listener, hosts ...string) (ca []byte, err error) {
	server, err := stub.ServeTLS(l, http.HandlerFunc(p.connect), hosts...)
	if err != nil {
		return nil, fmt.Errorf("serve HTTP CONNECT: %w", err)
	}
	p.keep(server)
	return server.CA(), nil
}

func (p *Proxy) keep(server *stub.Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers = append(p.servers, server)
}

// errCut is the cause that ends tunnels when the proxy is cut off.
var errCut = errors.New("the proxy is cut off from the network behind it")

// Cut cuts the proxy off from the network behind it: all tunnels break, and dials fail
// until Heal.
func (p *Proxy) Cut() { p.shut(errCut) }

// shut ends all tunnels and reaches nothing more.
func (p *Proxy) shut(why error) {
	p.mu.Lock()
	p.down = why
	tunnels := p.tunnels
	p.mu.Unlock()
	for _, t := range tunnels {
		t.cancel(why)
	}
}

// Heal lets the proxy reach the network again.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(p.down, errCut) {
		p.down = nil
	}
}

// Stop closes the listeners and all tunnels, and waits for the functions of the test to
// return.
func (p *Proxy) Stop(ctx context.Context) error {
	p.shut(stub.ErrStopped)
	p.mu.Lock()
	servers, grpcServers := p.servers, p.grpc
	p.mu.Unlock()
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.Interrupt(ctx))
	}
	for _, g := range grpcServers {
		g.Stop()
	}
	p.serves.Wait()
	return errors.Join(errs...)
}
