package envtest

import (
	"io"
	"net"
	"slices"
	"sync"

	"snowglobe.test/envtest/chain"
)

const maxReplicas = 9

// WithReplicas gives the control plane n API servers on its store, from 1 to 9,
// which start one after another. Each has its own name in rules
// (server=apiserver-1), its own lag and identity lease, and can crash and restart
// on its own; see ControlPlane.Servers. With more than one, the endpoints of the
// kubernetes Service follow them unless flags say otherwise, at addresses in
// 192.0.2.0/24, where nothing can be reached.
func WithReplicas(n int) Option {
	return func(c *config) {
		if n < 1 || n > maxReplicas {
			c.refuse("%d replicas; a control plane can have 1 to %d API servers", n, maxReplicas)
			return
		}
		c.replicas = n
	}
}

// checkReplicas refuses what only one server can have.
func (c *config) checkReplicas() {
	if _, port, err := net.SplitHostPort(c.listen); c.replicas > 1 && err == nil && port != "0" {
		c.refuse("%d replicas cannot share the listener address %q; use port 0", c.replicas, c.listen)
	}
}

// address is where each server listens besides in memory, empty for nowhere.
func (c *config) address() string {
	if c.listen == "" && c.kubeconfig != "" {
		return "localhost:0"
	}
	return c.listen
}

// Servers returns the API servers in order: Servers()[1] is apiserver-1.
func (cp *ControlPlane) Servers() []*Server { return slices.Clone(cp.servers) }

// allRun returns an error that names a server which does not run.
func (cp *ControlPlane) allRun() error {
	for _, server := range cp.servers {
		if i := server.current.Load(); !i.running() {
			return i.notRunning()
		}
	}
	return nil
}

// chains are those of the servers that run.
func (cp *ControlPlane) chains() []*chain.Chain {
	var chains []*chain.Chain
	for _, server := range cp.servers {
		if i := server.current.Load(); i != nil && i.running() && closed(i.endpoint.Opened()) {
			chains = append(chains, i.chain.Load())
		}
	}
	return chains
}

// serverNames are what rules call the servers.
func (cp *ControlPlane) serverNames() []string {
	var names []string
	for _, server := range cp.servers {
		names = append(names, server.name)
	}
	return names
}

// traceName is the server's name in the trace, empty if it is the only one.
func (cp *ControlPlane) traceName(s *Server) string {
	if cp.cfg.replicas == 1 {
		return ""
	}
	return s.name
}

// sharedWriter lets several servers write to one log, a line at a time.
type sharedWriter struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (w *sharedWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(line)
}
