package tunnel

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/fakes/konnectivity"
)

var proxyCases = suite.Launching([]suite.Case{
	{ID: "S2/node-traffic-goes-through-the-proxy", Test: nodeTrafficGoesThroughTheProxy,
		Source: "KEP-1281; k8s.io/apiserver/pkg/server/egressselector/egress_selector.go; " +
			"k8s.io/kubernetes/pkg/kubelet/client/kubelet_client.go, makeTransport",
		Promise: "With an egress selector for cluster, by HTTP CONNECT or gRPC, every connection to a kubelet goes " +
			"through the proxy to the node's address, and none directly."},
	{ID: "S2/cut-tunnel-fails-what-needs-it", Failure: true, Test: cutTunnelFailsWhatNeedsIt,
		Source: "KEP-1281; k8s.io/apiserver/pkg/server/egressselector/egress_selector.go; " +
			"k8s.io/kubernetes/pkg/registry/core/pod/rest/log.go",
		Promise: "While the tunnel is cut, logs, exec and the node proxy fail at once and nothing else does; when it " +
			"is mended they work again, without a restart."},
})

const socket = "/tunnel"

// newProxiedNode launches a control plane whose node is behind a proxy.
func newProxiedNode(ctx context.Context, t *suite.T, protocol string) (*node, *konnectivity.Proxy) {
	network, proxy := &suite.Network{}, konnectivity.New()
	t.Cleanup(proxy.Stop)
	if protocol == konnectivity.GRPC {
		proxy.ServeGRPC(network.At(socket))
	} else {
		proxy.ServeConnect(network.At(socket))
	}
	egress := konnectivity.EgressSelectorConfiguration(konnectivity.EgressSelection{Network: "cluster",
		Protocol: protocol, Socket: socket})
	n, beyond := newNode(ctx, t, setting{network: network, remote: true,
		flags: []string{"--egress-selector-config-file=" + t.File("egress.yaml", egress)}})
	proxy.Route(nodeAddress, beyond.Dial)
	n.app.Log.Print("it snows")
	n.app.Log.End()
	return n, proxy
}

func nodeTrafficGoesThroughTheProxy(ctx context.Context, t *suite.T) {
	for _, protocol := range []string{konnectivity.HTTPConnect, konnectivity.GRPC} {
		n, proxy := newProxiedNode(ctx, t, protocol)
		got := n.Answered(ctx, n.path+"/log?container=app", http.StatusOK)
		t.Expect(string(got.Body)).To(gomega.Equal("it snows\n"), protocol)
		tunnels := proxy.Tunnels()
		t.Expect(tunnels).NotTo(gomega.BeEmpty(), protocol)
		for _, tunnel := range tunnels {
			t.Expect(fmt.Sprint(tunnel.Request.Protocol, " ", tunnel.Request.Address, " ", tunnel.Err)).
				To(gomega.Equal(protocol + " " + nodeAddress + " <nil>"))
		}
	}
}

func cutTunnelFailsWhatNeedsIt(ctx context.Context, t *suite.T) {
	n, proxy := newProxiedNode(ctx, t, konnectivity.HTTPConnect)
	log := n.path + "/log?container=app"
	n.Answered(ctx, log, http.StatusOK)
	proxy.Cut()
	broken(ctx, n)
	proxy.Heal()
	n.Answered(ctx, log, http.StatusOK)
	n.Answered(ctx, "/api/v1/nodes/"+nodeName+"/proxy/healthz", http.StatusOK)
}
