package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	"snowglobe.test/fakes/internal/caller"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/internal/broadcast"
)

// Config says what a kubelet is like. Its zero value works.
type Config struct {
	// Node is the name of the node. Empty means "node".
	Node string
	// Hosts are the DNS names and IPs that the serving certificate is for. Empty means
	// localhost, 127.0.0.1, ::1 and the name of the node.
	Hosts []string
	// ClientCA is the certificate, in PEM, of the authority that clients are signed by.
	// Others are answered 401. Empty lets everybody in.
	ClientCA []byte
}

// Kubelet serves a kubelet's API until it is stopped.
type Kubelet struct {
	*stub.Server
	// Requests decides, request by request, and records.
	Requests *stub.Table[Request, Answer]

	node    string
	clients *caller.Authority

	mu       sync.Mutex
	pods     []*Pod     // in the order in which they were added
	sessions []*Session // in the order in which they began
	changed  broadcast.News
}

// Serve serves a kubelet's API over TLS. The listener is the kubelet's from now on,
// also if Serve fails.
func Serve(l net.Listener, config Config) (*Kubelet, error) {
	clients, err := caller.NewAuthority(config.ClientCA)
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("serve a kubelet: ClientCA: %w", err)
	}
	k := &Kubelet{node: cmp.Or(config.Node, "node"), clients: clients}
	k.Requests = stub.NewTable(k.answer)
	hosts := config.Hosts
	if len(hosts) == 0 {
		hosts = []string{"localhost", "127.0.0.1", "::1", k.node}
	}
	k.Server, err = stub.ServeTLS(l, k.authenticate(k.routes()), hosts...)
	if err != nil {
		return nil, fmt.Errorf("serve a kubelet: %w", err)
	}
	return k, nil
}

// Stop ends the contexts of all that runs, closes the listener and all connections,
// and waits for the functions of the test to return.
func (k *Kubelet) Stop(ctx context.Context) error { return k.Interrupt(ctx) }

// authenticate refuses those that the authority of clients doesn't vouch for.
func (k *Kubelet) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := k.clients.Verify(r); err != nil {
			k.Requests.Reject(newRequest("", r), fmt.Errorf("unauthorized: %w", err))
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
