package scenarios

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"snowglobe.test/envtest"
)

// tampers breaks what each script of the library demonstrates, in every way that
// it can break. A script that still passes demonstrates nothing.
var tampers = map[string]map[string]tamper{
	"crd-sync-signal": {
		// This breaks the protection itself: the server claims to know all its
		// paths before it has read its definitions.
		"signal fired early": {started: func(cp *envtest.ControlPlane) error {
			return apiServer(cp).FireSignal("MuxAndDiscoveryComplete")
		}},
		"signal not held": {start: func(r *startRequest) {
			r.hold = slices.DeleteFunc(r.hold, func(hook string) bool { return hook == "crd-informer-synced" })
		}},
		"404 instead of 503": {transport: replaceCode(http.StatusServiceUnavailable, http.StatusNotFound)},
		"503 for ever":       {transport: replaceCode(http.StatusNotFound, http.StatusServiceUnavailable)},
	},
	"hook-order": {
		"hooks not held":               {start: func(r *startRequest) { r.hold, r.holdAll = nil, false }},
		"only the fatal order is lost": {start: func(r *startRequest) { r.hold = nil }},
		"priority classes first": {order: func(hooks []string) {
			i := slices.Index(hooks, "scheduling/bootstrap-system-priority-classes")
			copy(hooks[1:i+1], hooks[:i])
			hooks[0] = "scheduling/bootstrap-system-priority-classes"
		}},
		"a hook forgotten": {order: func(hooks []string) { hooks[len(hooks)-1] = hooks[0] }},
	},
	"stale-read": {
		"cache not held": {openCaches: true},
		"no way out of the cache": {start: func(r *startRequest) {
			r.flags = append(r.flags, "--feature-gates=ConsistentListFromCacheSkipTimeoutFallback=true")
		}},
		"any version will do": {transport: askForAnyVersion},
		"no cache at all":     {start: func(r *startRequest) { r.flags = append(r.flags, "--watch-cache=false") }},
	},
	"expiry": {
		"time stands still": {standstill: true},
		"events stay":       {start: func(r *startRequest) { r.flags = append(r.flags, "--event-ttl=100h") }},
		"events go early":   {start: func(r *startRequest) { r.flags = append(r.flags, "--event-ttl=10m") }},
		"tokens stay":       {transport: askForLongTokens},
	},
}

func TestLibraryNotices(t *testing.T) {
	for _, script := range Library() {
		if len(tampers[script.Name]) == 0 {
			t.Errorf("no test proves that %s can fail", script.Name)
		}
		for name, tamper := range tampers[script.Name] {
			t.Run(script.Name+"/"+name, func(t *testing.T) {
				result := script.Run(t.Context(), Options{tamper: tamper})
				if result.Status != Failed {
					t.Fatalf("%s, though what it demonstrates was broken\n%s", result.Status, transcript(result))
				}
				if !strings.HasPrefix(result.Err.Error(), script.File+":") {
					t.Errorf("the failure does not say where it is: %v", result.Err)
				}
				t.Logf("as it should: %v", result.Err)
			})
		}
	}
}

// replaceCode makes the server give the wrong answer.
func replaceCode(from, to int) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(req)
			if err == nil && response.StatusCode == from {
				response.StatusCode = to
			}
			return response, err
		})
	}
}

// askForAnyVersion makes a client's classic mistake: resourceVersion 0.
func askForAnyVersion(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if query := req.URL.Query(); req.Method == http.MethodGet && !query.Has("resourceVersion") {
			req = req.Clone(req.Context())
			query.Set("resourceVersion", "0")
			req.URL.RawQuery = query.Encode()
		}
		return next.RoundTrip(req)
	})
}

// askForLongTokens makes every token request ask for a day.
func askForLongTokens(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(req.URL.Path, "/token") {
			return next.RoundTrip(req)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, err
		}
		request := object.(*authenticationv1.TokenRequest)
		if *request.Spec.ExpirationSeconds == 600 {
			*request.Spec.ExpirationSeconds = 24 * 60 * 60
		}
		body, err = runtime.Encode(scheme.Codecs.LegacyCodec(authenticationv1.SchemeGroupVersion), request)
		if err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		req.Header.Set("Content-Type", "application/json")
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
