package konnectivity

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"snowglobe.test/fakes/internal/caller"
	"snowglobe.test/fakes/stub"
)

// connect serves a request of HTTP CONNECT.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	from := caller.Of(r)
	request := Request{
		Protocol: HTTPConnect, Address: r.Host, User: from.User, Groups: from.Groups, Header: r.Header.Clone(),
	}
	if r.Method != http.MethodConnect {
		why := stub.Status{Code: http.StatusMethodNotAllowed, Body: []byte("this proxy only knows CONNECT")}
		p.Dials.Reject(request, why)
		stub.WriteError(w, why)
		return
	}
	request.Address = r.URL.Host // that of the request line, not of the header
	// A client that leaves ends the context of the request only until the connection is
	// taken over.
	t, err := p.dial(r.Context(), request)
	if err != nil {
		writeError(w, err)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.close(ByProxy, err)
		http.Error(w, "HTTP CONNECT needs a connection of its own: "+err.Error(), http.StatusHTTPVersionNotSupported)
		return
	}
	defer client.Close()
	defer context.AfterFunc(t.ctx, func() { _ = client.Close() })() // the client may have done so
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		t.close(ByClient, err)
		return
	}
	var down sync.WaitGroup
	down.Go(func() {
		err := t.receive(func(data []byte) error { _, err := client.Write(data); return err })
		if errors.Is(err, stub.ErrBreak) {
			stub.Break(client)
		}
	})
	if errors.Is(t.pump(buffered, ByClient, t.send), stub.ErrBreak) {
		stub.Break(client)
	}
	down.Wait()
}

// writeError answers a dial that has failed. What a rule says stands.
func writeError(w http.ResponseWriter, err error) {
	var status stub.Status
	if errors.As(err, &status) || errors.Is(err, stub.ErrBreak) {
		stub.WriteError(w, err)
		return
	}
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}
