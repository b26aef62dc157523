package kubelet

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"snowglobe.test/fakes/internal/caller"
	"snowglobe.test/fakes/stub"
)

// Request is what an API server asks of a kubelet.
type Request struct {
	Method string
	Path   string
	Query  url.Values
	Header http.Header

	// User and Groups are the common name and the organizations of the client's
	// certificate.
	User   string
	Groups []string

	// Verb is the first part of the path, such as "exec" or "metrics".
	Verb string
	// The rest is set for containerLogs, exec, attach, run and portForward.
	Namespace, Pod, UID string
	Container           string
	Command             []string // of exec and run
}

// Answer is what a kubelet does for a request: one field counts, that of the request's
// verb.
type Answer struct {
	// Process is run by exec, attach and run.
	Process ProcessFunc
	// Forward is called for each connection of a port-forward.
	Forward func(ctx context.Context, port int, conn net.Conn) error
	// Logs writes the lines of containerLogs. The context ends when the client leaves.
	// After stub.ErrBreak the connection is broken off in the middle.
	Logs func(ctx context.Context, w io.Writer) error
	// Page is the body of all other requests, of the type ContentType. Empty means
	// text.
	Page        []byte
	ContentType string
}

// newRequest reads a request that a route has been found for.
func newRequest(verb string, r *http.Request) Request {
	client := caller.Of(r)
	request := Request{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(),
		User: client.User, Groups: client.Groups,
		Verb:      verb,
		Namespace: r.PathValue("namespace"), Pod: r.PathValue("pod"), UID: r.PathValue("uid"),
		Container: r.PathValue("container"),
	}
	switch verb {
	case "exec":
		request.Command = request.Query["command"]
	case "run":
		// Of old, run takes its command from another parameter, in one piece.
		request.Command = strings.Split(request.Query.Get("cmd"), " ")
	case "":
		request.Verb, _, _ = strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	}
	return request
}

// handler serves a request for which the table has an answer.
type handler func(w http.ResponseWriter, r *http.Request, request Request, answer Answer)

// routes is the whole API.
func (k *Kubelet) routes() http.Handler {
	const place, withUID = "/{namespace}/{pod}", "/{namespace}/{pod}/{uid}"
	mux := http.NewServeMux()
	route := func(methods []string, verb string, serve handler, places ...string) {
		mux.Handle("/"+verb+"/", k.refuse(verb, http.StatusNotFound))
		for _, place := range places {
			mux.Handle("/"+verb+place, k.refuse(verb, http.StatusMethodNotAllowed))
			for _, method := range methods {
				mux.Handle(method+" /"+verb+place, k.decide(verb, serve))
			}
		}
	}
	get, post, both := []string{"GET"}, []string{"POST"}, []string{"GET", "POST"}
	route(get, "containerLogs", k.serveLogs, place+"/{container}")
	route(both, "exec", k.serveProcess, place+"/{container}", withUID+"/{container}")
	route(both, "attach", k.serveProcess, place+"/{container}", withUID+"/{container}")
	route(post, "run", k.serveRun, place+"/{container}", withUID+"/{container}")
	route(both, "portForward", k.servePortForward, place, withUID)
	mux.Handle("/", k.decide("", servePage))
	return mux
}

// decide asks the table what is to be done.
func (k *Kubelet) decide(verb string, serve handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := newRequest(verb, r)
		answer, err := k.Requests.Serve(r.Context(), request)
		if err != nil {
			stub.WriteError(w, err)
			return
		}
		serve(w, r, request, answer)
	})
}

// refuse answers and records what the API has no route for.
func (k *Kubelet) refuse(verb string, code int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why := text(code, "%d: %s", code, http.StatusText(code))
		k.Requests.Reject(newRequest(verb, r), why)
		stub.WriteError(w, why)
	})
}
