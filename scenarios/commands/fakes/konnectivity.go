package fakes

import (
	"encoding/json"
	"errors"

	"sigs.k8s.io/yaml"

	"snowglobe.test/fakes/konnectivity"
)

func serveHTTPConnect(at fakePlace) (*fake, error) {
	proxy := konnectivity.New()
	proxy.ServeConnect(at.listener)
	return fakeProxy(proxy, konnectivity.HTTPConnect, at)
}

func serveKonnectivityGRPC(at fakePlace) (*fake, error) {
	proxy := konnectivity.New()
	proxy.ServeGRPC(at.listener)
	return fakeProxy(proxy, konnectivity.GRPC, at)
}

// fakeProxy is a proxy behind which are the other fakes.
func fakeProxy(proxy *konnectivity.Proxy, protocol string, at fakePlace) (*fake, error) {
	proxy.Route("*", at.dial)
	show := func(r konnectivity.Request) any { return map[string]string{"address": r.Address} }
	read := func(content json.RawMessage) (reply[konnectivity.Request, konnectivity.Answer], error) {
		var said struct {
			BreakAfter int64 `json:"breakAfter"`
		}
		if err := yaml.UnmarshalStrict(content, &said); err != nil {
			return nil, err
		}
		if said.BreakAfter <= 0 {
			return nil, errors.New("breakAfter is a number of bytes above 0")
		}
		return always[konnectivity.Request](konnectivity.Answer{Dial: at.dial, BreakAfter: said.BreakAfter}), nil
	}
	asked := func(r konnectivity.Request) string { return "dial " + r.Address }
	said := func(konnectivity.Answer) string { return "connected" }
	config := konnectivity.EgressSelectorConfiguration(konnectivity.EgressSelection{Network: "cluster", Protocol: protocol, Socket: "/" + at.host})
	return &fake{
		server: proxy,
		use:    useOf(proxy.Dials, show, read), calls: callsOf(proxy.Dials, asked, said),
		files: map[string][]byte{egressExtension: config},
	}, nil
}
