package fakes

import (
	"encoding/json"
	"net/http"
	"strings"

	"snowglobe.test/fakes/aggregated"
)

func serveAggregated(at fakePlace) (*fake, error) {
	server, err := aggregated.Serve(at.listener, aggregated.Config{
		Hosts:     []string{at.host},
		Resources: []aggregated.Resource{{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true, Status: true}},
	})
	if err != nil {
		return nil, err
	}
	show := func(r aggregated.Request) any {
		return map[string]any{
			"verb": r.Verb, "path": r.Path, "group": r.Group, "version": r.Version, "resource": r.Resource,
			"namespace": r.Namespace, "name": r.ObjectName, "user": r.User, "groups": r.Groups,
		}
	}
	body := func(content json.RawMessage) (reply[aggregated.Request, http.Handler], error) {
		return always[aggregated.Request, http.Handler](http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(content) // the client may be gone
		})), nil
	}
	asked := func(r aggregated.Request) string {
		what := strings.ToUpper(r.Verb) + " " + r.Path
		if r.Resource != "" {
			what = r.Verb + " " + r.Resource + " " + place(r.Namespace, r.ObjectName)
		}
		return strings.TrimSpace(what + " by " + r.User)
	}
	said := func(http.Handler) string { return "answered" }
	return &fake{server: server, ca: server.CA(), use: useOf(server.Requests, show, body), calls: callsOf(server.Requests, asked, said)}, nil
}
