package upstream

// Works around patch.TypeConverterManager (k8s.io/apiserver/pkg/admission/plugin/
// policy/mutating/patch), which asks for the OpenAPI v3 index every five seconds.
// TestOpenAPIIndex shows what it is for, and TestSchemasAfterIdle of envtest fails
// when an index is out of date.

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"
)

// openAPIIndex carries a server's own requests.
type openAPIIndex struct {
	next    http.RoundTripper
	polling *OpenAPIPolling

	mu   sync.Mutex
	last map[string]indexAnswer // by Accept header
}

type indexAnswer struct {
	response *http.Response
	body     []byte
	at       time.Time
}

// CacheIndex returns the transport of a server's own requests that answers those
// for the OpenAPI v3 index with the last answer while no schema can have changed.
func (p *OpenAPIPolling) CacheIndex(next http.RoundTripper) http.RoundTripper {
	return &openAPIIndex{next: next, polling: p, last: map[string]indexAnswer{}}
}

// RoundTrip implements http.RoundTripper.
func (i *openAPIIndex) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet || req.URL.Path != "/openapi/v3" || req.URL.RawQuery != "" {
		return i.next.RoundTrip(req)
	}
	accept := req.Header.Get("Accept")
	if !i.polling.settled() {
		return i.next.RoundTrip(req)
	}
	if answer, ok := i.recall(accept); ok {
		return answer.to(req), nil
	}
	response, err := i.next.RoundTrip(req)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	answer := indexAnswer{response: response, at: time.Now()}
	answer.body, err = io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last[accept] = answer
	return answer.to(req), nil
}

// WrappedRoundTripper implements k8s.io/apimachinery/pkg/util/net.RoundTripperWrapper.
func (i *openAPIIndex) WrappedRoundTripper() http.RoundTripper { return i.next }

// recall returns the last answer, if it is young. One from before a change is not,
// because schemas take longer than that to settle.
func (i *openAPIIndex) recall(accept string) (indexAnswer, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	answer, ok := i.last[accept]
	return answer, ok && time.Since(answer.at) < idlePoll
}

// to returns a copy of the answer for another request.
func (a indexAnswer) to(req *http.Request) *http.Response {
	response := *a.response
	response.Header = a.response.Header.Clone()
	response.Body = io.NopCloser(bytes.NewReader(a.body))
	response.Request = req
	return &response
}
