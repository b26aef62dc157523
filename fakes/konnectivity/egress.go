package konnectivity

import "encoding/json"

// EgressSelection leads a network, such as cluster or controlplane, through a proxy that
// serves a protocol on a Unix socket.
type EgressSelection struct {
	Network  string
	Protocol string // HTTPConnect or GRPC
	Socket   string // its path
}

// EgressSelectorConfiguration is a file for --egress-selector-config-file.
func EgressSelectorConfiguration(selections ...EgressSelection) []byte {
	var encoded []any
	for _, s := range selections {
		encoded = append(encoded, map[string]any{"name": s.Network, "connection": map[string]any{
			"proxyProtocol": s.Protocol,
			"transport":     map[string]any{"uds": map[string]any{"udsName": s.Socket}},
		}})
	}
	content, _ := json.Marshal(map[string]any{ // strings alone: it can be encoded
		"apiVersion":       "apiserver.k8s.io/v1beta1",
		"kind":             "EgressSelectorConfiguration",
		"egressSelections": encoded,
	})
	return content
}
