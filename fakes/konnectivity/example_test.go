package konnectivity_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/konnectivity"
)

// A webhook that is only to be reached through the proxy, and then not even so.
func Example() {
	ctx := context.Background()
	webhook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "admitted") }))
	defer webhook.Close()

	proxy := konnectivity.New()
	proxy.Route("*.svc:80", func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, webhook.Listener.Addr().String())
	})
	l := memnet.Listen()
	proxy.ServeGRPC(l)

	// A kube-apiserver is given the selector, or a file that names the proxy's socket.
	selector := egressselector.NewEgressSelectorWithMap(map[egressselector.EgressType]utilnet.DialFunc{
		egressselector.Cluster: konnectivity.DialGRPC(l.DialContext),
	})
	dial, err := selector.Lookup(egressselector.Cluster.AsNetworkContext())
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	get := func() {
		response, err := client.Get("http://policy.default.svc/validate")
		if err != nil {
			fmt.Println("not reached")
			return
		}
		body, err := io.ReadAll(response.Body)
		fmt.Println(string(body), err)
		_ = response.Body.Close()
	}
	get()
	if _, err := proxy.AwaitTunnels(ctx, 1); err != nil {
		log.Fatal(err)
	}
	proxy.Cut()
	get()

	tunnels, err := proxy.AwaitTunnels(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range tunnels {
		fmt.Println(t.Request.Address, !t.Opened.IsZero(), t.Err)
	}
	if err := proxy.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// admitted <nil>
	// not reached
	// policy.default.svc:80 true <nil>
	// policy.default.svc:80 false the proxy is cut off from the network behind it
}
