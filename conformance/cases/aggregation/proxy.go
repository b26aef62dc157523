package aggregation

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/fakes/aggregated"
	"snowglobe.test/fakes/stub"
)

var proxyCases = suite.Launching([]suite.Case{
	{ID: "S14/request-reaches-the-aggregated-server", Level: suite.Core, Test: requestReachesTheServer,
		Source: "k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go, ServeHTTP",
		Promise: "A request of an aggregated group reaches the server behind its APIService with method, path, query " +
			"and body, and its answer comes back with code, headers and body."},
	{ID: "S14/identity-goes-in-headers", Test: identityGoesInHeaders,
		Source: "k8s.io/client-go/transport/round_trippers.go, SetAuthProxyHeaders; " +
			"k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go",
		Promise: "An aggregated server is told in X-Remote headers the name, UID, groups and extra of the user it " +
			"acts for, after impersonation, and gets no credentials of theirs."},
	{ID: "S14/own-identity-headers-are-dropped", Level: suite.Core, Failure: true, Test: ownIdentityHeadersAreDropped,
		Source: "k8s.io/client-go/transport/round_trippers.go, SetAuthProxyHeaders; " +
			"k8s.io/apiserver/pkg/authentication/request/headerrequest/requestheader.go",
		Promise: "X-Remote headers that a client sends itself reach no aggregated server: it gets those of the " +
			"authenticated user alone."},
	{ID: "S14/watch-goes-through-the-proxy", Level: suite.Core, Test: watchGoesThrough,
		Source: "k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go; " +
			"k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go, FlushInterval",
		Promise: "A watch on an aggregated resource gets each event when it happens, and ends when the aggregated " +
			"server ends it."},
	{ID: "S14/redirect-is-not-passed-on", Failure: true, Test: redirectIsNotPassedOn,
		Source: "k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go, RejectForwardingRedirects",
		Promise: "A redirect of an aggregated server, 301 or 307, is answered 502 without its Location, so that no " +
			"client is led elsewhere with its credentials."},
	{ID: "S14/upgrade-is-passed-on", Test: upgradeIsPassedOn,
		Source: "k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go, upgrade",
		Promise: "A request to upgrade the connection is handed to the aggregated server with the user's identity, " +
			"and the connection is theirs from then on."},
	{ID: "S14/broken-answer-is-an-error", Failure: true, Test: brokenAnswerIsAnError,
		Source: "k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go, responder",
		Promise: "If an aggregated server breaks the connection off instead of answering, the client gets 503, and " +
			"the next request is served."},
})

func requestReachesTheServer(ctx context.Context, beside *suite.T) {
	b, t := ready(ctx, beside)
	got := t.AnsweredTo(ctx, suite.Request{Method: http.MethodPost, Path: b.path("v1") + "?fieldManager=me%2Byou",
		Body: b.widget("one", "red")}, http.StatusCreated)
	asked := b.last()
	t.Expect(asked.Method + " " + asked.Path).To(gomega.Equal("POST " + b.path("v1")))
	t.Expect(asked.Query.Get("fieldManager")).To(gomega.Equal("me+you"))
	t.Expect(string(asked.Body)).To(gomega.ContainSubstring(`"color":"red"`))
	read, err := b.client().Get(ctx, "one", metav1.GetOptions{})
	t.Must(err, "get Widget one")
	t.Expect(suite.Value(read, "spec", "color")).To(gomega.Equal("red"))

	defer b.reply(nil, stub.Status{Code: http.StatusTeapot, Header: http.Header{"X-Pot": {"tea"}},
		Body: []byte("short and stout")})()
	got = t.Answered(ctx, b.path("v1")+"/one", http.StatusTeapot)
	t.Expect(got.Header.Get("X-Pot")).To(gomega.Equal("tea"), "%s", got)
	t.Expect(string(got.Body)).To(gomega.Equal("short and stout"))
}

func identityGoesInHeaders(ctx context.Context, beside *suite.T) {
	b, t := ready(ctx, beside)
	t.AnsweredTo(ctx, suite.Request{Path: b.path("v1"), Header: map[string]string{
		"Impersonate-User": "jane", "Impersonate-Uid": "4711", "Impersonate-Group": "system:masters",
		"Impersonate-Extra-Example.com%2fScopes": "development",
	}}, http.StatusOK)
	asked := b.last()
	t.Expect(asked.User).To(gomega.Equal("jane"))
	t.Expect(asked.UID).To(gomega.Equal("4711"))
	t.Expect(asked.Groups).To(gomega.Equal([]string{"system:masters", "system:authenticated"}))
	t.Expect(asked.Extra).To(gomega.Equal(map[string][]string{"example.com/scopes": {"development"}}))
	for _, secret := range []string{"Authorization", "Impersonate-User", "Impersonate-Group", "Impersonate-Uid"} {
		t.Expect(asked.Header).NotTo(gomega.HaveKey(secret))
	}
}

func ownIdentityHeadersAreDropped(ctx context.Context, beside *suite.T) {
	b, t := ready(ctx, beside)
	t.Answered(ctx, b.path("v1"), http.StatusOK)
	honest := b.last()
	t.AnsweredTo(ctx, suite.Request{Path: b.path("v1"), Header: map[string]string{
		"X-Remote-User": "mallory", "X-Remote-Uid": "0", "X-Remote-Group": "wheel", "X-Remote-Extra-Scopes": "all",
	}}, http.StatusOK)
	asked := b.last()
	t.Expect(asked.User).To(gomega.And(gomega.Equal(honest.User), gomega.Not(gomega.BeEmpty())))
	t.Expect(asked.Header.Values("X-Remote-User")).To(gomega.HaveLen(1))
	t.Expect(asked.UID).To(gomega.Equal(honest.UID))
	t.Expect(asked.Groups).To(gomega.And(gomega.Equal(honest.Groups), gomega.ContainElement("system:masters")))
	t.Expect(asked.Extra).To(gomega.Equal(honest.Extra))
}

func watchGoesThrough(ctx context.Context, beside *suite.T) {
	b, t := ready(ctx, beside)
	events := t.Watch(ctx, b.client().Watch, metav1.ListOptions{})
	b.put("one", "red")
	t.Expect(suite.Brief(events.Take(ctx, 1))).To(gomega.Equal([]string{"ADDED one"}))
	b.put("one", "blue")
	t.Expect(suite.Brief(events.Take(ctx, 1))).To(gomega.Equal([]string{"MODIFIED one"}))
	b.Remove(b.resource(), "", "one")
	t.Expect(suite.Brief(events.Take(ctx, 1))).To(gomega.Equal([]string{"DELETED one"}))
	b.BreakWatches()
	for _, event := range events.Ended(ctx) {
		t.Expect(event.Type).To(gomega.Equal(watch.Error), "%v", event)
	}
}

func redirectIsNotPassedOn(ctx context.Context, beside *suite.T) {
	b, t := ready(ctx, beside)
	for _, code := range []int{http.StatusMovedPermanently, http.StatusTemporaryRedirect} {
		b.reply(nil, stub.Status{Code: code, Header: http.Header{"Location": {"https://elsewhere.example.com/steal"}}})
		got := t.Answered(ctx, b.path("v1"), http.StatusBadGateway)
		t.Expect(got.Header).NotTo(gomega.HaveKey("Location"), "%s", got)
		t.Expect(string(got.Body)).To(gomega.Equal("the backend attempted to redirect this request, which is not " +
			"permitted"))
	}
	// Without a Location it leads nowhere.
	b.reply(nil, stub.Status{Code: http.StatusNotModified})
	t.Answered(ctx, b.path("v1"), http.StatusNotModified)
}

func upgradeIsPassedOn(ctx context.Context, beside *suite.T) {
	b, t := ready(ctx, beside)
	b.reply(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+
			"%s\r\n\r\nhello %s",
			r.Header.Get("Upgrade"), r.Header.Get("X-Remote-User"))
	}), nil)
	got := t.AnsweredTo(ctx, suite.Request{Path: b.path("v1") + "/one/chat", Header: map[string]string{
		"Connection": "Upgrade", "Upgrade": "chat", "Impersonate-User": "jane", "Impersonate-Group": "system:masters",
	}}, http.StatusSwitchingProtocols)
	t.Expect(got.Header.Get("Upgrade")).To(gomega.Equal("chat"), "%s", got)
	t.Expect(string(got.Body)).To(gomega.Equal("hello jane"), "%s", got)
}

func brokenAnswerIsAnError(ctx context.Context, beside *suite.T) {
	b, t := ready(ctx, beside)
	remove := b.reply(nil, stub.ErrBreak)
	t.AnsweredTo(ctx, suite.Request{Method: http.MethodPost, Path: b.path("v1"), Body: b.widget("one", "red")},
		http.StatusServiceUnavailable)
	remove()
	t.Answered(ctx, b.path("v1")+"/one", http.StatusNotFound)
	t.Answered(ctx, b.path("v1"), http.StatusOK)
}

// reply answers what clients ask for, and not discovery, in the same way.
func (b *backend) reply(answer http.Handler, err error) (remove func()) {
	return b.Requests.Use(stub.Rule[aggregated.Request, http.Handler]{
		When:   notDiscovery,
		Answer: func(context.Context, aggregated.Request) (http.Handler, error) { return answer, err },
	})
}
