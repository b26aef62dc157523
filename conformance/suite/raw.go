package suite

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
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

// Request is a raw request of path: by default a GET that accepts JSON, without a body.
type Request struct {
	Path        string // with its query
	Method      string
	Accept      string
	IfNoneMatch string
	Header      map[string]string // further headers; they win over those above
	Body        any               // marshalled as JSON; []byte goes as it is
}

// Answer is the complete response to a raw request.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
	asked  string
}

// String describes request and response, for messages.
func (a Answer) String() string {
	const enough = 600
	body := a.Body
	if len(body) > enough {
		body = append(body[:enough:enough], "..."...)
	}
	return fmt.Sprintf("%s answered %d: %s", a.asked, a.Code, body)
}

// TableType is the media type of a list as a Table, whose columns the server chooses.
const TableType = "application/json;as=Table;g=meta.k8s.io;v=v1"

// Ask makes a raw request. The case fails if there is no answer.
func (t *T) Ask(ctx context.Context, r Request) Answer {
	var body io.Reader
	if r.Body != nil {
		content, raw := r.Body.([]byte)
		if !raw {
			var err error
			content, err = json.Marshal(r.Body)
			t.Must(err, "encode the body for %s", r.Path)
		}
		body = bytes.NewReader(content)
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodGet), t.raw.base+r.Path, body)
	t.Must(err, "request of %s", r.Path)
	req.Header.Set("Accept", cmp.Or(r.Accept, runtime.ContentTypeJSON))
	if r.Body != nil {
		req.Header.Set("Content-Type", runtime.ContentTypeJSON)
	}
	if r.IfNoneMatch != "" {
		req.Header.Set("If-None-Match", r.IfNoneMatch)
	}
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	resp, err := t.raw.http.Do(req)
	t.Must(err, "request of %s", r.Path)
	content, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	t.Must(err, "request of %s", r.Path)
	return Answer{Code: resp.StatusCode, Header: resp.Header, Body: content, asked: req.Method + " " + r.Path}
}

// Get makes a raw GET request.
func (t *T) Get(ctx context.Context, path string) Answer {
	return t.Ask(ctx, Request{Path: path})
}

// Answered makes a raw GET request, which must be answered with that code.
func (t *T) Answered(ctx context.Context, path string, code int) Answer {
	return t.AnsweredTo(ctx, Request{Path: path}, code)
}

// AnsweredTo makes a raw request, which must be answered with that code.
func (t *T) AnsweredTo(ctx context.Context, request Request, code int) Answer {
	return t.ExpectCode(t.Ask(ctx, request), code)
}

// ExpectCode asserts that an answer has that code, and returns it.
func (t *T) ExpectCode(got Answer, code int) Answer {
	t.Expect(got.Code).To(gomega.Equal(code), "%s", got)
	return got
}

// Until polls until a path is answered with a code. A server learns of writes through watches of
// its own, and there is nothing to watch that says when it has.
func (t *T) Until(ctx context.Context, path string, code int, why ...any) {
	t.Eventually(ctx, func() int { return t.Get(ctx, path).Code }).Should(gomega.Equal(code), why...)
}

// Served polls until a path is answered 200.
func (t *T) Served(ctx context.Context, path string) {
	t.Until(ctx, path, http.StatusOK, "%s is not served", path)
}

// GetJSON makes a raw GET request, which must be answered 200 with JSON.
func GetJSON[V any](ctx context.Context, t *T, path string) V { return JSON[V](t, t.Get(ctx, path)) }

// JSON decodes an answer, which must be 200 with JSON.
func JSON[V any](t *T, got Answer) (decoded V) {
	t.Expect(got.Code).To(gomega.Equal(http.StatusOK), "%s", got)
	t.Must(json.Unmarshal(got.Body, &decoded), "decode: %s", got)
	return decoded
}

// Metric returns the value of a metric of the server: the sum of its series that have all these
// labels, each like `status="failure"`. Servers in one process share their metrics.
func (t *T) Metric(ctx context.Context, name string, labels ...string) (sum float64) {
	for line := range strings.Lines(string(t.Answered(ctx, "/metrics", http.StatusOK).Body)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		ofName, found := strings.CutPrefix(series, name+"{")
		if !found || slices.ContainsFunc(labels, func(label string) bool { return !strings.Contains(ofName, label) }) {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		t.Must(err, "read the metric %s", line)
		sum += number
	}
	return sum
}

// Reloads is how often the servers of this process have reloaded the configuration of something, such
// as "authentication", with a status: success or failure.
func (t *T) Reloads(ctx context.Context, of, status string) float64 {
	return t.Metric(ctx, "apiserver_"+of+"_config_controller_automatic_reloads_total", `status="`+status+`"`)
}

// UntilReloads polls until Reloads is as wanted: servers look at their files now and then.
func (t *T) UntilReloads(ctx context.Context, of, status string, wanted gomegatypes.GomegaMatcher, why ...any) {
	t.Eventually(ctx, func() float64 { return t.Reloads(ctx, of, status) }).WithPolling(time.Second).
		Should(wanted, why...)
}

// ExpectStatus asserts that the answer is a Status with the code and the reason of a refusal.
func (t *T) ExpectStatus(got Answer, want Refusal) metav1.Status {
	t.Expect(got.Code).To(gomega.Equal(want.Code), "%s", got)
	var status metav1.Status
	t.Must(json.Unmarshal(got.Body, &status), "decode: %s", got)
	t.Expect(status.Kind).To(gomega.Equal("Status"), "%s", got)
	t.Expect(status.APIVersion).To(gomega.Equal("v1"), "%s", got)
	t.Expect(status.Status).To(gomega.Equal(metav1.StatusFailure), "%s", got)
	t.Expect(status.Code).To(gomega.BeEquivalentTo(want.Code), "%s", got)
	t.Expect(status.Reason).To(gomega.Equal(want.Reason), "%s", got)
	return status
}

// DiscoveryType is the media type of aggregated discovery.
const DiscoveryType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// Discovery fetches aggregated discovery and returns it by group version.
func (t *T) Discovery(ctx context.Context, path string) map[string]apidiscoveryv2.APIVersionDiscovery {
	got := t.Ask(ctx, Request{Path: path, Accept: DiscoveryType})
	list := JSON[apidiscoveryv2.APIGroupDiscoveryList](t, got)
	t.Expect(list.Kind).To(gomega.Equal("APIGroupDiscoveryList"), "%s", got)
	t.Expect(got.Header.Get("Content-Type")).To(gomega.Equal(DiscoveryType))
	t.Expect(got.Header.Get("Vary")).To(gomega.ContainSubstring("Accept"), "a cache must know")
	versions := map[string]apidiscoveryv2.APIVersionDiscovery{}
	for _, group := range list.Items {
		for _, version := range group.Versions {
			name := strings.TrimPrefix(group.Name+"/"+version.Version, "/")
			t.Expect(versions).NotTo(gomega.HaveKey(name), "%s is listed twice", name)
			versions[name] = version
		}
	}
	return versions
}
