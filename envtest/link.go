package envtest

import (
	"net"
	"net/http"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/memnet"
)

// Link is the way of some client to the API servers, inside the process. It goes
// to one server at a time: the first that accepts requests, until that one is
// gone, as behind a load balancer, or the one that Use says. Make it with
// ControlPlane.NewLink. All its methods may be called from any goroutine.
type Link struct {
	cp    *ControlPlane
	admin http.RoundTripper // the link as the admin goes it

	mu     sync.Mutex
	pinned *Server // nil for any
	cut    bool
	conn   *connection // nil before the first request
	server *Server     // whose conn is
}

// NewLink returns a way to the API servers that nobody else goes.
func (cp *ControlPlane) NewLink() *Link { return newLink(cp, nil) }

func newLink(cp *ControlPlane, pinned *Server) *Link {
	l := &Link{cp: cp, pinned: pinned}
	l.admin = cp.observed(AdminUser, l)
	return l
}

var errUnreachable = &net.OpError{Op: "dial", Net: "memory", Addr: memnet.Addr{}, Err: syscall.EHOSTUNREACH}

// Config returns a configuration of a cluster admin whose requests go this way.
// The caller may change the copy.
func (l *Link) Config() *rest.Config {
	config := rest.CopyConfig(l.cp.admin)
	config.Transport = l.admin
	return config
}

// AddUser returns a configuration of a user in groups whose requests go this way;
// see ControlPlane.AddUser.
func (l *Link) AddUser(name string, groups ...string) *rest.Config {
	return &rest.Config{
		Host:        "https://" + l.cp.first().addr.String(),
		BearerToken: l.cp.users.add(name, groups),
		Transport:   l.cp.observed(name, l),
		QPS:         -1, // a test waits for the server, not for its own client
	}
}

// Use makes all requests go to one server from now on; nil means to the first
// that accepts them. What is in flight at another one breaks: its connection is
// reset.
func (l *Link) Use(server *Server) {
	l.mu.Lock()
	l.pinned = server
	var left *connection
	if server != nil && l.server != server {
		left, l.conn, l.server = l.conn, nil, nil
	}
	l.mu.Unlock()
	if left != nil {
		left.breakOff(errReset)
	}
}

// Server returns the server to which the requests go, nil if that is not decided:
// none was made, or its server is gone.
func (l *Link) Server() *Server {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pinned != nil || l.conn == nil || !l.conn.open() {
		return l.pinned
	}
	return l.server
}

// Cut lets nothing through until Heal: requests and watches in flight time out,
// and no server can be reached.
func (l *Link) Cut() {
	l.mu.Lock()
	left := l.conn
	l.cut, l.conn, l.server = true, nil, nil
	l.mu.Unlock()
	if left != nil {
		left.breakOff(errSilence)
	}
}

// Heal ends Cut.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// RoundTrip implements http.RoundTripper.
func (l *Link) RoundTrip(req *http.Request) (*http.Response, error) {
	conn, err := l.connection()
	if err != nil {
		return refuse(req, err)
	}
	return conn.RoundTrip(req)
}

// connection returns the one there is, or opens one.
func (l *Link) connection() (*connection, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, errUnreachable
	}
	if l.conn != nil && l.conn.open() {
		return l.conn, nil
	}
	candidates := l.cp.servers
	if l.pinned != nil {
		candidates = []*Server{l.pinned}
	}
	for _, server := range candidates {
		if conn, err := server.connect(); err == nil {
			l.conn, l.server = conn, server
			return conn, nil
		}
	}
	return nil, errRefused
}
