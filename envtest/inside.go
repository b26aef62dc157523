package envtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest/memnet"
)

// inside are the servers in the memory of the process that the API servers reach, by
// their hosts.
type inside struct {
	serviceAt func(ctx context.Context, ip string) (host string, err error)

	mu        sync.Mutex
	places    map[string]*place
	webhooks  map[*Webhook]struct{}
	made      int // for default names
	cancelled error
}

// place is one host. Nobody listens there before it is open.
type place struct {
	listener *memnet.Listener
	open     bool
}

// dial connects to the host of an address, if it is inside.
func (in *inside) dial(ctx context.Context, address string) (conn net.Conn, ok bool, err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, false, nil // a Unix socket's path
	}
	if in.hasServices() && net.ParseIP(host) != nil {
		if host, err = in.serviceAt(ctx, host); err != nil {
			return nil, true, err
		}
	}
	switch at, open := in.at(host); {
	case at == nil:
		return nil, false, nil
	case !open:
		return nil, true, &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	default:
		conn, err = at.listener.DialContext(ctx)
		return conn, true, err
	}
}

// at returns the place of a host, nil if it is not inside, and whether it is open.
func (in *inside) at(host string) (at *place, open bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	at = in.places[host]
	return at, at != nil && at.open
}

// serviceSuffix is what the host of a service ends with.
const serviceSuffix = ".svc"

// hasServices reports whether a host is that of a service, whose cluster IP upstream
// may dial instead.
func (in *inside) hasServices() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	for host := range in.places {
		if strings.HasSuffix(host, serviceSuffix) {
			return true
		}
	}
	return false
}

// serviceAt returns the host of the service with a cluster IP, as kube-proxy would, and
// the IP itself if there is none.
func (cp *ControlPlane) serviceAt(ctx context.Context, ip string) (host string, err error) {
	client, err := kubernetes.NewForConfig(cp.admin)
	if err != nil {
		return "", err
	}
	services, err := client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("look for the service at %s: %w", ip, err)
	}
	for _, service := range services.Items {
		if slices.Contains(service.Spec.ClusterIPs, ip) {
			return service.Name + "." + service.Namespace + serviceSuffix, nil
		}
	}
	return ip, nil
}

// name returns a host that no other webhook has.
func (in *inside) name() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.made++
	return fmt.Sprintf("webhook-%d.snowglobe", in.made)
}

// add makes the hosts the webhook's, whoever had them before.
func (in *inside) add(w *Webhook, at *place) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.cancelled != nil {
		return in.cancelled
	}
	in.webhooks[w] = struct{}{}
	for _, host := range w.hosts {
		in.places[host] = at
	}
	return nil
}

// remove forgets a webhook. Its hosts stay known, so that nobody looks for them outside.
func (in *inside) remove(w *Webhook) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.webhooks, w)
	w.at.open = false
}

func (in *inside) openTo(w *Webhook) {
	in.mu.Lock()
	defer in.mu.Unlock()
	_, left := in.webhooks[w]
	w.at.open = left
}

// stop stops all webhooks that are left, and refuses new ones.
func (in *inside) stop(ctx context.Context) error {
	in.mu.Lock()
	in.cancelled = errStopped
	left := make([]*Webhook, 0, len(in.webhooks))
	for w := range in.webhooks {
		left = append(left, w)
	}
	in.mu.Unlock()
	var errs []error
	for _, w := range left {
		errs = append(errs, w.Stop(ctx))
	}
	return errors.Join(errs...)
}
