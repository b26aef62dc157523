package memnet

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
)

// UpgradeTransport returns a transport for requests that take the connection
// over (exec, attach, port-forward). It speaks HTTP/1.1, one connection per
// request, to the server behind dial. With a nil tlsConfig it speaks plain
// HTTP even for https URLs; otherwise those are dialed with TLS as usual.
func UpgradeTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error), tlsConfig *tls.Config) *http.Transport {
	t := &http.Transport{
		DialContext:        dial,
		TLSClientConfig:    tlsConfig,
		DisableKeepAlives:  true,
		DisableCompression: true,
	}
	if tlsConfig == nil {
		t.DialTLSContext = dial
	}
	return t
}

// wantsUpgrade reports whether the client asks to leave HTTP on this connection.
func wantsUpgrade(h http.Header) bool {
	for _, v := range h["Connection"] {
		for token := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return true
			}
		}
	}
	return false
}
