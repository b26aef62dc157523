// Package webhook owns the servers in the memory of the process that only the API servers of
// one control plane can reach: admission and conversion webhooks, and whatever else API
// servers call by HTTPS. They need no port and no certificate files, and work in virtual
// time. Upstream's own code calls them, subject to the rules of "egress".
package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/stub"
)

// Set is the webhooks of one control plane, by their hosts; see ControlPlane.Webhooks.
type Set struct {
	certify   stub.Certify
	serviceAt func(ctx context.Context, ip string) (host string, err error)

	mu      sync.Mutex
	hosts   map[string]*host
	servers map[*Server]struct{}
	made    int // for default names
	stopped bool
}

// NewSet makes a set without webhooks. Certify makes their certificates; serviceAt
// returns the host of the service with a cluster IP, or the IP itself if there is none.
func NewSet(certify stub.Certify, serviceAt func(ctx context.Context, ip string) (host string, err error)) *Set {
	return &Set{certify: certify, serviceAt: serviceAt, hosts: map[string]*host{}, servers: map[*Server]struct{}{}}
}

// Serve serves a handler to the API servers: an admission or conversion webhook, or any
// other HTTPS server that they call, such as an aggregated API server. It is served at the
// given hosts, or at one of its own. "webhook-service.system.svc" is the host of a Service,
// which has to exist for upstream to call it. A host that belonged to another webhook
// belongs to this one from the next connection on.
func (s *Set) Serve(handler http.Handler, hosts ...string) (*Server, error) {
	w, err := s.New(handler, hosts...)
	if err != nil {
		return nil, err
	}
	w.Open()
	return w, nil
}

// New is Serve, but connections are refused until Open is called.
func (s *Set) New(handler http.Handler, hosts ...string) (*Server, error) {
	if len(hosts) == 0 {
		hosts = []string{s.name()}
	}
	listener := memnet.Listen()
	server, err := stub.ServeTLSBy(s.certify, listener, handler, hosts...)
	if err != nil {
		return nil, fmt.Errorf("serve a webhook: %w", err)
	}
	w := &Server{set: s, server: server, hosts: hosts, at: &host{listener: listener}}
	if err := s.add(w); err != nil {
		_ = server.Stop(context.Background()) // no API server has called it
		return nil, fmt.Errorf("serve a webhook: %w", err)
	}
	return w, nil
}

// host is one of them. It refuses connections before it is open.
type host struct {
	listener *memnet.Listener
	open     bool
}

// Dial connects to the host of an address, if it is that of a webhook.
func (s *Set) Dial(ctx context.Context, address string) (conn net.Conn, ok bool, err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, false, nil // a Unix socket's path
	}
	if s.hasServices() && net.ParseIP(host) != nil {
		if host, err = s.serviceAt(ctx, host); err != nil {
			return nil, true, err
		}
	}
	switch at, open := s.at(host); {
	case at == nil:
		return nil, false, nil
	case !open:
		return nil, true, &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	default:
		conn, err = at.listener.DialContext(ctx)
		return conn, true, err
	}
}

// at returns the place of a host, nil if no webhook has it, and whether it is open.
func (s *Set) at(host string) (at *host, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at = s.hosts[host]
	return at, at != nil && at.open
}

// serviceSuffix is what the host of a service ends with.
const serviceSuffix = ".svc"

// hasServices reports whether a host is that of a service, whose cluster IP upstream
// may dial instead.
func (s *Set) hasServices() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for host := range s.hosts {
		if strings.HasSuffix(host, serviceSuffix) {
			return true
		}
	}
	return false
}

// name returns a host that no other webhook has.
func (s *Set) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return fmt.Sprintf("webhook-%d.snowglobe", s.made)
}

// add makes the hosts the webhook's, even if another had them before.
func (s *Set) add(w *Server) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errors.New("the control plane was stopped")
	}
	s.servers[w] = struct{}{}
	for _, host := range w.hosts {
		s.hosts[host] = w.at
	}
	return nil
}

// remove forgets a webhook. Its hosts stay known, so that the API servers do not look for
// them outside.
func (s *Set) remove(w *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.servers, w)
	w.at.open = false
}

func (s *Set) openTo(w *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, left := s.servers[w]
	w.at.open = left
}

// Stop stops all webhooks that are left, and refuses new ones. A nil Set has none.
func (s *Set) Stop(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	return s.stopAll(ctx)
}

func (s *Set) stopAll(ctx context.Context) error {
	s.mu.Lock()
	left := slices.Collect(maps.Keys(s.servers))
	s.mu.Unlock()
	var errs []error
	for _, w := range left {
		errs = append(errs, w.Stop(ctx))
	}
	return errors.Join(errs...)
}

// Clear stops all webhooks and forgets their hosts.
func (s *Set) Clear(ctx context.Context) error {
	err := s.stopAll(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.hosts)
	s.made = 0
	return err
}
