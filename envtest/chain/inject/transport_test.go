package inject

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/egressselector"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

// roundTrips is a transport that answers 200 and keeps the bodies it was sent.
type roundTrips []string

// RoundTrip implements http.RoundTripper.
func (r *roundTrips) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	*r = append(*r, string(body))
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("answer"))}, req.Body.Close()
}

// closing is a body that says whether it was closed.
type closing struct {
	io.Reader
	closed bool
}

// Close implements io.Closer.
func (c *closing) Close() error {
	c.closed = true
	return nil
}

// TestTransport is what each action does to a request that the server makes.
func TestTransport(t *testing.T) {
	for rule, want := range map[string]struct {
		sent int
		code int
		err  error
	}{
		"delay webhook/w by=1ms":        {sent: 1, code: 200},
		"fail webhook/w with=503":       {code: 503},
		"fail webhook/w with=refused":   {err: syscall.ECONNREFUSED},
		"lose-reply webhook/w":          {sent: 1, err: syscall.ECONNRESET},
		"lose-reply webhook/w with=500": {sent: 1, code: 500},
		"duplicate webhook/w":           {sent: 2, code: 200},
		"drop webhook/w":                {err: context.Canceled},
		"cancel webhook/w":              {err: context.Canceled},
		"crash webhook/w":               {err: fault.ErrCrashed},
		"fail webhook/v with=503":       {sent: 1, code: 200},
	} {
		t.Run(rule, func(t *testing.T) {
			var next roundTrips
			injected := &transport{next: &next, injector: injectorFor(t, rule), describe: func(*http.Request) (fault.Operation, bool) {
				return fault.Operation{Point: "webhook/w", Verb: "create"}, true
			}}
			ctx, cancel := context.WithCancel(t.Context())
			if strings.HasPrefix(rule, "drop") {
				context.AfterFunc(t.Context(), cancel)
				go cancel()
			}
			defer cancel()
			body := &closing{Reader: strings.NewReader("review")}
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://webhook/", body)
			require.NoError(t, err)
			response, err := injected.RoundTrip(req)
			if want.err != nil {
				require.ErrorIs(t, err, want.err)
			} else {
				require.NoError(t, err)
				assert.Equal(t, want.code, response.StatusCode)
				require.NoError(t, response.Body.Close())
			}
			assert.Len(t, next, want.sent)
			for _, sent := range next {
				assert.Equal(t, "review", sent)
			}
			assert.True(t, body.closed, "a RoundTripper closes the body")
		})
	}
}

// TestRepeatedBodyFails can't read the body that a rule repeats.
func TestRepeatedBodyFails(t *testing.T) {
	broken := errors.New("broken")
	var next roundTrips
	injected := &transport{next: &next, injector: injectorFor(t, "duplicate webhook/w"), describe: func(*http.Request) (fault.Operation, bool) {
		return fault.Operation{Point: "webhook/w", Verb: "create"}, true
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://webhook/", failing{broken})
	require.NoError(t, err)
	_, err = injected.RoundTrip(req)
	require.ErrorIs(t, err, broken)
	assert.Empty(t, next)
}

// TestDescribeInformer is how rules see what informers ask.
func TestDescribeInformer(t *testing.T) {
	resolver := genericapiserver.NewRequestInfoResolver(genericapiserver.NewConfig(codecs))
	for uri, want := range map[string]fault.Operation{
		"/api/v1/secrets?resourceVersion=0":                                     {Point: "informer/secrets", Verb: "list"},
		"/api/v1/secrets?watch=true&resourceVersion=7":                          {Point: "informer/secrets", Verb: "watch"},
		"/api/v1/secrets?watch=1":                                               {Point: "informer/secrets", Verb: "watch"},
		"/api/v1/secrets?watch=true&sendInitialEvents=true":                     {Point: "informer/secrets", Verb: "list"},
		"/apis/apps/v1/deployments?watch=true":                                  {Point: "informer/deployments.apps", Verb: "watch"},
		"/api/v1/namespaces/kube-system/configmaps?resourceVersion=0":           {Point: "informer/configmaps", Verb: "list", Namespace: "kube-system"},
		"/api/v1/configmaps?watch=true&fieldSelector=metadata.name%3Dsnow":      {Point: "informer/configmaps", Verb: "watch", Name: "snow"},
		"/api/v1/namespaces?watch=true":                                         {Point: "informer/namespaces", Verb: "watch"},
		"/api/v1/secrets":                                                       {},
		"/api/v1/namespaces/default/secrets/a?resourceVersion=0":                {},
		"/api/v1/namespaces/default?resourceVersion=0":                          {},
		"/healthz?resourceVersion=0":                                            {},
		"/apis/apps/v1?resourceVersion=0":                                       {},
		"/api/v1/watch?resourceVersion=0":                                       {},
		"/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Da":               {Point: "informer/pods", Verb: "watch"},
		"/api/v1/namespaces/default/pods/a/status?watch=true&resourceVersion=0": {},
	} {
		op, ok := describeInformer(httptest.NewRequest(http.MethodGet, uri, nil), resolver)
		assert.Equal(t, want != fault.Operation{}, ok, uri)
		if ok {
			assert.Equal(t, want, op, uri)
		}
	}
	_, ok := describeInformer(httptest.NewRequest(http.MethodPost, "/api/v1/secrets?resourceVersion=0", nil), resolver)
	assert.False(t, ok)
}

// TestSync asks before an informer gets the answer to its list, and only then.
func TestSync(t *testing.T) {
	resolver := genericapiserver.NewRequestInfoResolver(genericapiserver.NewConfig(codecs))
	var next roundTrips
	ask := func(i *edge.Injector, uri string) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster"+uri, strings.NewReader(""))
		require.NoError(t, err)
		go cancel()
		response, err := Informers(&next, i, resolver).RoundTrip(req)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	i := injectorFor(t, "drop informer/secrets verb=sync")
	require.NoError(t, ask(i, "/api/v1/secrets?watch=true"))
	require.ErrorIs(t, ask(i, "/api/v1/secrets?resourceVersion=0"), context.Canceled)
	assert.Len(t, next, 2)
	wrapper, ok := Informers(&next, i, resolver).(utilnet.RoundTripperWrapper)
	require.True(t, ok)
	assert.Same(t, &next, wrapper.WrappedRoundTripper())
}

// TestEgress dials by rules until it is closed.
func TestEgress(t *testing.T) {
	dialed := 0
	egress := NewEgress(injectorFor(t, "fail egress/cluster key=10.0.0.1 with=refused", "fail egress/etcd with=unreachable"))
	dialer := func(network egressselector.EgressType) utilnet.DialFunc {
		return egress.Dialer(network, func(context.Context, string, string) (net.Conn, error) {
			dialed++
			conn, _ := net.Pipe()
			return conn, nil
		})
	}
	cluster, etcd := dialer(egressselector.Cluster), dialer(egressselector.Etcd)
	_, err := cluster(t.Context(), "tcp", "10.0.0.1:443")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = cluster(t.Context(), "tcp", "10.0.0.2:443")
	require.NoError(t, err)
	_, err = etcd(t.Context(), "unix", "/a/socket")
	require.ErrorIs(t, err, syscall.EHOSTUNREACH)
	assert.Equal(t, 1, dialed)
	egress.Close()
	_, err = etcd(t.Context(), "unix", "/a/socket")
	require.ErrorIs(t, err, net.ErrClosed)
	assert.Equal(t, 1, dialed, "a closed egress dials no server")
	_, err = NewEgress(nil).Dialer(egressselector.Etcd, func(context.Context, string, string) (net.Conn, error) {
		conn, _ := net.Pipe()
		return conn, nil
	})(t.Context(), "tcp", "a:1")
	require.NoError(t, err)
}

// TestAPIServices is what each action does to a request for an aggregated server.
func TestAPIServices(t *testing.T) {
	for rule, want := range map[string]struct {
		passed int
		code   int
		body   string
	}{
		"delay apiservice/v1.snow.example.com by=1ms":                                           {passed: 1, code: 200, body: "aggregated"},
		"fail apiservice/v1.snow.example.com with=503":                                          {code: 503, body: "injected"},
		"fail apiservice/v1.snow.example.com with=refused":                                      {code: 503, body: "connection refused"},
		"lose-reply apiservice/v1.snow.example.com with=500":                                    {passed: 1, code: 500, body: "injected"},
		"duplicate apiservice/v1.snow.example.com verb=create resource=flakes.snow.example.com": {passed: 2, code: 200, body: "aggregated"},
		"cancel apiservice/v1.snow.example.com":                                                 {code: 503, body: "canceled"},
		"crash apiservice/v1.snow.example.com":                                                  {code: 503, body: "crashed"},
		"fail apiservice/v1.apps with=503":                                                      {passed: 1, code: 200, body: "aggregated"},
	} {
		t.Run(rule, func(t *testing.T) {
			passed := 0
			next := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body, err := io.ReadAll(req.Body)
				assert.NoError(t, err)
				assert.Equal(t, "flake", string(body))
				passed++
				_, _ = io.WriteString(w, "aggregated")
			})
			get := func(name string) (*apiregistrationv1.APIService, error) {
				assert.Equal(t, "v1.snow.example.com", name)
				return &apiregistrationv1.APIService{
					Spec:   apiregistrationv1.APIServiceSpec{Service: &apiregistrationv1.ServiceReference{}},
					Status: apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue}}},
				}, nil
			}
			w := httptest.NewRecorder()
			req := httptest.NewRequest(http.MethodPost, "/apis/snow.example.com/v1/namespaces/default/flakes", strings.NewReader("flake"))
			authenticated(APIServices(next, injectorFor(t, rule), get)).ServeHTTP(w, req)
			assert.Equal(t, want.code, w.Code)
			assert.Contains(t, w.Body.String(), want.body)
			assert.Equal(t, want.passed, passed)
		})
	}
}
