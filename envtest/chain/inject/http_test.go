package inject

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes/scheme"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/memnet"
	"snowglobe.test/envtest/trace"
)

// TestHTTPOperation is how rules see requests, by upstream's own reading of them.
func TestHTTPOperation(t *testing.T) {
	for _, test := range []struct {
		method, path string
		want         fault.Operation
	}{
		{"GET", "/api/v1/namespaces/default/pods/a", fault.Operation{Point: "http/get", Resource: "pods", Namespace: "default", Name: "a"}},
		{"GET", "/api/v1/pods?watch=true", fault.Operation{Point: "http/watch", Resource: "pods", Key: "/api/v1/pods"}},
		{"HEAD", "/api/v1/pods/a", fault.Operation{Point: "http/get", Resource: "pods", Name: "a"}},
		{"OPTIONS", "/api/v1/pods", fault.Operation{Point: "http/options", Resource: "pods"}},
		{"DELETE", "/api/v1/namespaces/default/pods", fault.Operation{Point: "http/deletecollection", Resource: "pods", Namespace: "default"}},
		{"PUT", "/api/v1/namespaces/default/pods/a/status", fault.Operation{Point: "http/update", Resource: "pods/status", Namespace: "default", Name: "a"}},
		{"PATCH", "/apis/apps/v1/namespaces/default/deployments/a/scale", fault.Operation{Point: "http/patch", Resource: "deployments.apps/scale", Namespace: "default", Name: "a"}},
		{"GET", "/api/v1/namespaces/default", fault.Operation{Point: "http/get", Resource: "namespaces", Name: "default"}},
		{"PUT", "/api/v1/namespaces/default/finalize", fault.Operation{Point: "http/update", Resource: "namespaces/finalize", Name: "default"}},
		{"POST", "/metrics", fault.Operation{Point: "http/post"}},
		{"GET", "/apis", fault.Operation{Point: "http/get"}},
		{"BREW", "/coffee", fault.Operation{}},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			if test.want.Key == "" && test.want.Point != "" {
				test.want.Key = test.path
			}
			seen := operationOf(t, httptest.NewRequest(test.method, test.path, nil))
			if test.want.Point != "" {
				test.want.Phase, test.want.Server, test.want.Caller, test.want.Occurrence = fault.Before, "apiserver-0", "jane", 1
			}
			assert.Equal(t, test.want, seen)
		})
	}
}

// operationOf is what a gate sees of a request before it is handled; nothing, if
// it passes unseen.
func operationOf(t *testing.T, req *http.Request) fault.Operation {
	set := fault.New(fault.Config{})
	gate, err := set.Gate("http/*")
	require.NoError(t, err)
	defer set.Close()
	requests := requestsForTest(set)
	api := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	handled := make(chan struct{})
	go func() {
		defer close(handled)
		requests.Outermost(authenticated(requests.HandlerChain(plainChain)(api, configForTest()))).ServeHTTP(httptest.NewRecorder(), req)
	}()
	waiting := make(chan fault.Operation, 1)
	go func() {
		if ops, err := gate.Await(t.Context(), 1); err == nil {
			waiting <- ops[0]
		}
	}()
	select {
	case op := <-waiting:
		gate.Open()
		<-handled
		return op
	case <-handled:
		return fault.Operation{}
	}
}

func requestsForTest(set *fault.Set) *Requests {
	return NewRequests(trace.NewRecorder("test", 1), edge.NewInjector(set, "apiserver-0", edge.Effects{}))
}

func plainChain(api http.Handler, _ *genericapiserver.Config) http.Handler { return api }

func configForTest() *genericapiserver.Config {
	return &genericapiserver.Config{
		Serializer:      scheme.Codecs,
		LongRunningFunc: func(_ *http.Request, info *request.RequestInfo) bool { return info.Verb == "watch" },
	}
}

// authenticated is what upstream's filters find out about a request.
func authenticated(next http.Handler) http.Handler {
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, err := resolver.NewRequestInfo(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx := request.WithRequestInfo(request.WithUser(req.Context(), &user.DefaultInfo{Name: "jane"}), info)
		next.ServeHTTP(w, req.WithContext(ctx))
	})
}

// BenchmarkRequests is what a small GET costs when it could meet rules and there are
// none, next to what it costs without. There is nothing of upstream in it but the
// reading of the request: of a real request the difference is a smaller part.
func BenchmarkRequests(b *testing.B) {
	requests := requestsForTest(fault.New(fault.Config{}))
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`))
	})
	config := configForTest()
	without := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		activeOf(req).enter(req, config.LongRunningFunc)
		api.ServeHTTP(w, req)
	})
	transports := []*memnet.Transport{
		{Handler: requests.Outermost(authenticated(without))},
		{Handler: requests.Outermost(authenticated(requests.HandlerChain(plainChain)(api, config)))},
	}
	const round = 50 // of one, then of the other: a busy moment is in few rounds
	var took [2][]float64
	for b.Loop() {
		for which, transport := range transports {
			began := time.Now()
			for range round {
				roundTrip(b, transport)
			}
			took[which] = append(took[which], float64(time.Since(began))/round)
		}
	}
	median := func(of []float64) float64 {
		slices.Sort(of)
		return of[len(of)/2]
	}
	plain, with := median(took[0]), median(took[1])
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(plain, "ns/without")
	b.ReportMetric(with, "ns/with")
	b.ReportMetric(100*(with/plain-1), "%more")
}

func roundTrip(b *testing.B, transport *memnet.Transport) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "https://cluster/api/v1/namespaces/default/configmaps/a", nil)
	if err != nil {
		b.Fatal(err)
	}
	response, err := transport.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	_ = response.Body.Close()
}
