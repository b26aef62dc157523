package chain

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"
)

// schemaIndex answers the server's own requests for the OpenAPI v3 index with
// the last answer while no schema can have changed, see schemaPace.
type schemaIndex struct {
	next http.RoundTripper
	pace *schemaPace

	mu   sync.Mutex
	last map[string]indexAnswer // by Accept header
}

type indexAnswer struct {
	response *http.Response
	body     []byte
	at       time.Time
}

func newSchemaIndex(next http.RoundTripper, pace *schemaPace) *schemaIndex {
	return &schemaIndex{next: next, pace: pace, last: map[string]indexAnswer{}}
}

// RoundTrip implements http.RoundTripper.
func (i *schemaIndex) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet || req.URL.Path != "/openapi/v3" || req.URL.RawQuery != "" {
		return i.next.RoundTrip(req)
	}
	accept := req.Header.Get("Accept")
	if !i.pace.settled() {
		i.forget()
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
func (i *schemaIndex) WrappedRoundTripper() http.RoundTripper { return i.next }

func (i *schemaIndex) recall(accept string) (indexAnswer, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	answer, ok := i.last[accept]
	return answer, ok && time.Since(answer.at) < idlePoll
}

func (i *schemaIndex) forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.last)
}

// to returns a copy of the answer for another request.
func (a indexAnswer) to(req *http.Request) *http.Response {
	response := *a.response
	response.Header = a.response.Header.Clone()
	response.Body = io.NopCloser(bytes.NewReader(a.body))
	response.Request = req
	return &response
}
