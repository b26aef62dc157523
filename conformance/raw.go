package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// rawClient makes requests that no typed client would, and returns answers unchanged.
type rawClient struct {
	http *http.Client
	base string
}

func newRawClient(config *rest.Config) (*rawClient, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &rawClient{http: client, base: strings.TrimRight(base.String(), "/")}, nil
}

// request is a raw request of path: by default a GET that accepts JSON, without a body.
type request struct {
	path        string // with its query
	method      string
	accept      string
	ifNoneMatch string
	body        any // marshalled as JSON
}

// answer is the complete response to a raw request.
type answer struct {
	code   int
	header http.Header
	body   []byte
	asked  string
}

// String describes request and response, for messages.
func (a answer) String() string {
	const enough = 600
	body := a.body
	if len(body) > enough {
		body = append(body[:enough:enough], "..."...)
	}
	return fmt.Sprintf("%s answered %d: %s", a.asked, a.code, body)
}

// ask makes a raw request. The case fails if there is no answer.
func (t *Target) ask(ctx context.Context, r request) answer {
	var body io.Reader
	if r.body != nil {
		content, err := json.Marshal(r.body)
		t.must(err, "encode the body for %s", r.path)
		body = bytes.NewReader(content)
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.method, http.MethodGet), t.raw.base+r.path, body)
	t.must(err, "request of %s", r.path)
	req.Header.Set("Accept", cmp.Or(r.accept, runtime.ContentTypeJSON))
	if r.body != nil {
		req.Header.Set("Content-Type", runtime.ContentTypeJSON)
	}
	if r.ifNoneMatch != "" {
		req.Header.Set("If-None-Match", r.ifNoneMatch)
	}
	resp, err := t.raw.http.Do(req)
	t.must(err, "request of %s", r.path)
	content, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	t.must(err, "request of %s", r.path)
	return answer{code: resp.StatusCode, header: resp.Header, body: content, asked: req.Method + " " + r.path}
}

func (t *Target) get(ctx context.Context, path string) answer {
	return t.ask(ctx, request{path: path})
}

// answered makes a raw GET request, which must be answered with that code.
func (t *Target) answered(ctx context.Context, path string, code int) answer {
	got := t.get(ctx, path)
	t.Expect(got.code).To(gomega.Equal(code), "%s", got)
	return got
}

// getJSON makes a raw GET request, which must be answered 200 with JSON.
func (t *Target) getJSON(ctx context.Context, path string, into any) {
	t.json(t.get(ctx, path), into)
}

func (t *Target) json(got answer, into any) {
	t.Expect(got.code).To(gomega.Equal(http.StatusOK), "%s", got)
	t.must(json.Unmarshal(got.body, into), "decode: %s", got)
}

// expectStatus asserts that the answer is a Status with a code and a reason.
func (t *Target) expectStatus(got answer, code int, reason metav1.StatusReason) metav1.Status {
	t.Expect(got.code).To(gomega.Equal(code), "%s", got)
	var status metav1.Status
	t.must(json.Unmarshal(got.body, &status), "decode: %s", got)
	t.Expect(status.Kind).To(gomega.Equal("Status"), "%s", got)
	t.Expect(status.APIVersion).To(gomega.Equal("v1"), "%s", got)
	t.Expect(status.Status).To(gomega.Equal(metav1.StatusFailure), "%s", got)
	t.Expect(status.Code).To(gomega.BeEquivalentTo(code), "%s", got)
	t.Expect(status.Reason).To(gomega.Equal(reason), "%s", got)
	return status
}
