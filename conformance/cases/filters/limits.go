package filters

import (
	"context"
	"net/http"
	"time"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var limitCases = []suite.Case{
	{ID: "S4/large-body-is-413", Failure: true, Test: largeBodyIs413,
		Source: "k8s.io/apiserver/pkg/endpoints/handlers/rest.go, limitedReadBody; " +
			"k8s.io/apiserver/pkg/server/config.go, MaxRequestBodyBytes",
		Promise: "A body of more than 3 MiB is refused with 413, whether it creates, updates or patches, and has " +
			"no effect."},
	{ID: "S4/request-has-its-time", Failure: true, Needs: suite.Launch, Test: requestHasItsTime,
		Source: "k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go and " +
			"k8s.io/apiserver/pkg/server/filters/timeout.go",
		Promise: "A request that takes longer than the server's --request-timeout, or than it asks for if that is " +
			"less, is answered 504; one with a timeout that is not a duration 400; a watch goes on."},
	{ID: "S4/filters-are-in-order", Level: suite.Core, Failure: true, Test: filtersAreInOrder,
		Source: "k8s.io/apiserver/pkg/server/config.go, DefaultBuildHandlerChain",
		Promise: "Who can't be authenticated is told 401 before what he may do is asked, who may not impersonate or " +
			"act 403 before what he sends is looked at, and only then is an object found or missing, valid or not."},
	{ID: "S4/too-many-in-flight-is-429", Failure: true, Needs: suite.Launch, Test: tooManyInFlightIs429,
		Source: "k8s.io/apiserver/pkg/server/filters/maxinflight.go, WithMaxInFlightLimit",
		Promise: "Without priority and fairness, one request more than a server handles at a time is answered 429 " +
			"with Retry-After 1; reads and writes are counted apart, watches and system:masters are not."},
	{ID: "S4/groups-can-be-turned-off", Needs: suite.Launch, Test: groupsCanBeTurnedOff,
		Source: "k8s.io/apiserver/pkg/server/resourceconfig/helpers.go, MergeAPIResourceConfigs",
		Promise: "A group version that --runtime-config turns off is 404 and not in discovery, and one that it turns " +
			"on is served; the others stay as they are."},
	{ID: "S4/profiling-can-be-turned-off", Needs: suite.Launch, Test: profilingCanBeTurnedOff,
		Source: "k8s.io/apiserver/pkg/server/config.go, installAPI",
		Promise: "With --profiling=false there is no /debug/pprof/, and with the default there is, for those who may " +
			"read it; /metrics is there in both."},
}

func largeBodyIs413(ctx context.Context, t *suite.T) {
	maps := t.ConfigMaps(ctx)
	maps.Make(ctx, "a")
	huge := maps.Object("a", large(3*1024))
	small := maps.Object("b", large(900))
	for method, path := range map[string]string{http.MethodPost: maps.Path(), http.MethodPut: maps.Path() + "/a",
		http.MethodPatch: maps.Path() + "/a"} {
		got := t.Ask(ctx, suite.Request{Method: method, Path: path, Body: huge, Header: patchType(method)})
		t.Expect(t.ExpectStatus(got, suite.TooLarge).Message).To(gomega.ContainSubstring("limit is 3145728"))
	}
	t.Expect(maps.Read(ctx, "a").Data).To(gomega.HaveKeyWithValue("content", "first"), "what is stored")
	maps.MustCreate(ctx, small)
}

// patchType is the header that a patch must have.
func patchType(method string) map[string]string {
	if method == http.MethodPatch {
		return map[string]string{"Content-Type": "application/merge-patch+json"}
	}
	return nil
}

// held is the point at which single Secrets are read.
const held = "store/range resource=secrets"

const secret = "/api/v1/namespaces/default/secrets/a"

func requestHasItsTime(ctx context.Context, t *suite.T) {
	cp, beside := t.Launch(ctx, envtest.WithFlags("--request-timeout=3s"))
	gate := t.Gate(cp, held)
	t.Cleanup(func(context.Context) error { gate.Open(); return nil })
	maps := beside.Watch(ctx, beside.Kube.CoreV1().ConfigMaps("").Watch, metav1.ListOptions{})
	defer maps.Stop()
	for query, seconds := range map[string]time.Duration{"": 3, "?timeout=1s": 1, "?timeout=1h": 3} {
		began := time.Now()
		// This client asks again if the server has begun to answer and breaks off.
		err := beside.Kube.CoreV1().RESTClient().Get().RequestURI(secret + query).Do(ctx).Error()
		t.Expect(err).To(suite.BeStatus(suite.Timeout), "with query %q", query)
		t.Expect(time.Since(began)).To(gomega.BeNumerically(">=", seconds*time.Second), "with query %q", query)
	}
	beside.Answered(ctx, secret+"?timeout=soon", http.StatusBadRequest)
	beside.ConfigMaps(ctx).Make(ctx, "after")
	maps.Until(ctx, "ADDED", "after")
}

func filtersAreInOrder(ctx context.Context, t *suite.T) {
	maps := t.ConfigMaps(ctx)
	wrong := map[string]any{"metadata": map[string]any{"name": "NOT A NAME"}}
	post := func(t *suite.T, header map[string]string) suite.Answer {
		return t.Ask(ctx, suite.Request{Method: http.MethodPost, Path: maps.Path(), Body: wrong, Header: header})
	}
	stranger, nobody := t.WithToken("no-such-token"), t.As("nobody")
	t.ExpectStatus(post(stranger, nil), suite.Unauthorized)
	t.ExpectStatus(post(stranger, map[string]string{"Impersonate-User": "jane"}), suite.Unauthorized)
	t.ExpectStatus(stranger.Get(ctx, "/no/such/path"), suite.Unauthorized)
	t.ExpectStatus(post(nobody, nil), suite.Forbidden)
	t.ExpectStatus(nobody.Get(ctx, maps.Path()+"/missing"), suite.Forbidden)
	t.ExpectStatus(nobody.Get(ctx, "/no/such/path"), suite.Forbidden)
	t.ExpectStatus(post(t, nil), suite.Invalid)
	t.ExpectStatus(t.Get(ctx, maps.Path()+"/missing"), suite.NotFound)
	got := t.Ask(ctx, suite.Request{Method: http.MethodPost, Path: "/api/v1/namespaces/" + t.Name + "-x/configmaps",
		Body: wrong})
	t.ExpectStatus(got, suite.NotFound) // by admission, before validation
}

// admins makes users who may do all, without being of the group system:masters.
func admins(ctx context.Context, t *suite.T, users ...string) {
	var subjects []rbacv1.Subject
	for _, user := range users {
		subjects = append(subjects, suite.User(user))
	}
	t.BindEverywhere(ctx, t.Name, suite.ClusterRoleRef("cluster-admin"), subjects...)
	for _, user := range users {
		t.As(user).Served(ctx, "/api/v1/namespaces/default/configmaps")
	}
}

// busy holds a user's request in the server until the function that it returns is called, which
// returns the answer's code. Requests of the server itself are counted too, so that the first
// ones of the user may be refused.
func busy(ctx context.Context, t *suite.T, cp *envtest.ControlPlane, user *suite.T) (end func() int32) {
	gate := t.Gate(cp, held)
	t.Cleanup(func(context.Context) error { gate.Open(); return nil })
	code := begin(ctx, user, "a")
	t.Eventually(ctx, func() bool {
		select {
		case <-code:
			code = begin(ctx, user, "a")
		default:
		}
		return len(gate.Waiting()) == 1
	}).Should(gomega.BeTrue(), "no read of a Secret is held")
	return func() int32 { gate.Open(); return <-code }
}

// begin reads a Secret in the background. It sends the answer's code.
func begin(ctx context.Context, user *suite.T, name string) <-chan int32 {
	code := make(chan int32, 1)
	go func() {
		_, err := user.Kube.CoreV1().Secrets(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		code <- suite.StatusOf(err).Code
	}()
	return code
}

func tooManyInFlightIs429(ctx context.Context, t *suite.T) {
	cp, beside := t.Launch(ctx, envtest.WithFlags(
		"--enable-priority-and-fairness=false", "--max-requests-inflight=1", "--max-mutating-requests-inflight=1"))
	admins(ctx, beside, "jane")
	jane := beside.As("jane")
	end := busy(ctx, t, cp, jane)
	const maps = "/api/v1/namespaces/default/configmaps"
	tooMany(t, jane.Get(ctx, maps))
	t.Eventually(ctx, func() int {
		return jane.Ask(ctx, suite.Request{Method: http.MethodPost, Path: maps,
			Body: map[string]any{"metadata": map[string]any{"name": "a"}}}).Code
	}).Should(gomega.Equal(http.StatusCreated), "a write")
	jane.Answered(ctx, maps+"?watch=1&timeoutSeconds=1", http.StatusOK)
	beside.As("root", "system:masters").Answered(ctx, maps, http.StatusOK)
	t.Expect(end()).To(gomega.BeEquivalentTo(http.StatusNotFound), "the first request")
	jane.Served(ctx, maps)
}

// tooMany asserts that a request was one too many.
func tooMany(t *suite.T, got suite.Answer) {
	t.ExpectCode(got, http.StatusTooManyRequests)
	t.Expect(got.Header.Get("Retry-After")).To(gomega.Equal("1"), "%s", got)
	t.Expect(string(got.Body)).To(gomega.Equal("Too many requests, please try again later.\n"))
}

func groupsCanBeTurnedOff(ctx context.Context, t *suite.T) {
	_, beside := t.Shared(ctx, "filters", flags())
	beside.Answered(ctx, "/apis/autoscaling/v1/horizontalpodautoscalers", http.StatusNotFound)
	beside.Answered(ctx, "/apis/autoscaling/v1", http.StatusNotFound)
	beside.Answered(ctx, "/apis/autoscaling/v2/horizontalpodautoscalers", http.StatusOK)
	group := suite.GetJSON[metav1.APIGroup](ctx, beside, "/apis/autoscaling")
	t.Expect(group.Versions).
		To(gomega.Equal([]metav1.GroupVersionForDiscovery{{GroupVersion: "autoscaling/v2", Version: "v2"}}))
	t.Answered(ctx, "/apis/autoscaling/v1/horizontalpodautoscalers", http.StatusOK)
}

// flags of the control plane that the cases about flags share.
func flags() envtest.Option {
	return envtest.WithFlags("--runtime-config=autoscaling/v1=false", "--profiling=false",
		`--cors-allowed-origins=//example\.com(:\d+)?$`,
		"--strict-transport-security-directives=max-age=31536000,includeSubDomains")
}

func profilingCanBeTurnedOff(ctx context.Context, t *suite.T) {
	_, beside := t.Shared(ctx, "filters", flags())
	beside.Answered(ctx, "/debug/pprof/", http.StatusNotFound)
	t.Answered(ctx, "/debug/pprof/", http.StatusOK)
	t.ExpectStatus(t.As("nobody").Get(ctx, "/debug/pprof/"), suite.Forbidden)
	for _, at := range []*suite.T{t, beside} {
		got := at.Answered(ctx, "/metrics", http.StatusOK)
		t.Expect(string(got.Body)).To(gomega.ContainSubstring("apiserver_request_total"), "/metrics")
	}
}
