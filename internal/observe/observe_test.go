package observe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"snowglobe.test/envtest/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers requests as a transport.
type server func(*http.Request) (*http.Response, error)

func (s server) RoundTrip(req *http.Request) (*http.Response, error) { return s(req) }

func answered(code int, contentType, body string) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}
}

// ask sends a request through an observer and reads the answer.
func ask(t *testing.T, o *Observer, method, uri, contentType, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://cluster.test"+uri, bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", contentType)
	response, err := o.RoundTrip(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	require.NoError(t, response.Body.Close())
}

// events are what has been recorded.
func events(r *trace.Recorder) (all []trace.Event) {
	for _, rec := range r.Records() {
		all = append(all, rec.Event)
	}
	return all
}

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	jsonMedia  = "application/json"
)

// TestAnswers tells what was asked, when, of whom, and what the answer was.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := trace.NewRecorder("test", 0)
		recorder.Record(trace.Note{Text: "before"})
		broken := errors.New("connection reset")
		o := New("viewer", server(func(req *http.Request) (*http.Response, error) {
			AnsweredBy(req, "apiserver-1")
			time.Sleep(time.Second)
			switch req.Method {
			case "POST":
				return answered(201, jsonMedia, `{"kind":"ConfigMap","metadata":{"name":"snow","namespace":"default","uid":"u1","resourceVersion":"5","labels":{"b":"2","a":"1"},"finalizers":["x/b","x/a"]}}`), nil
			case "PUT":
				return answered(409, jsonMedia, `{"kind":"Status","reason":"Conflict","details":{"name":"snow","kind":"configmaps","uid":"u1"}}`), nil
			case "DELETE":
				return nil, broken
			}
			return answered(200, jsonMedia, `{"kind":"ConfigMapList","metadata":{"resourceVersion":"9","continue":"more"},"items":[{"metadata":{"name":"snow","deletionTimestamp":"2000-01-01T00:00:00Z"}}]}`), nil
		}), recorder)
		ask(t, o, "POST", configMaps+"?dryRun=All", jsonMedia, `{"metadata":{"name":"snow"}}`)
		ask(t, o, "PUT", configMaps+"/snow", jsonMedia, `{"metadata":{"name":"snow","resourceVersion":"4"}}`)
		ask(t, o, "DELETE", configMaps+"/snow", jsonMedia, `{"preconditions":{"uid":"u1","resourceVersion":"5"},"dryRun":["All"]}`)
		ask(t, o, "GET", configMaps+"?limit=1", "", "")
		made := trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "snow", UID: "u1", Revision: 5, Labels: "a=1,b=2", Finalizers: "x/b,x/a"}
		want := []trace.Answer{
			{Method: "POST", URI: configMaps + "?dryRun=All", Code: 201, Asked: 1, Sent: trace.Object{Name: "snow"}, DryRun: true, Objects: []trace.Object{made}},
			{Method: "PUT", URI: configMaps + "/snow", Code: 409, Asked: 2, Reason: "Conflict", Sent: trace.Object{Name: "snow", Revision: 4}, About: trace.Object{Kind: "configmaps", Name: "snow", UID: "u1"}},
			{Method: "DELETE", URI: configMaps + "/snow", Asked: 3, Sent: trace.Object{UID: "u1", Revision: 5}, DryRun: true, Err: broken},
			{Method: "GET", URI: configMaps + "?limit=1", Code: 200, Asked: 4, Revision: 9, Continue: "more", Objects: []trace.Object{{Kind: "ConfigMap", Name: "snow", Deleting: true}}},
		}
		for i, rec := range recorder.Records()[1:] {
			assert.Equal(t, "apiserver-1", rec.Server)
			answer := rec.Event.(trace.Answer)
			withoutDigests(t, &answer)
			want[i].Client, want[i].Took = "viewer", time.Second
			assert.Equal(t, want[i], answer)
		}
		assert.Empty(t, o.Pending())
	})
}

// withoutDigests takes the digests away, which must be there.
func withoutDigests(t *testing.T, answer *trace.Answer) {
	t.Helper()
	for i := range answer.Objects {
		assert.NotEmpty(t, answer.Objects[i].Digest)
		answer.Objects[i].Digest = ""
	}
	answer.Sent.Digest = ""
}

// TestPending tells what is under way, which may have been done.
func TestPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := trace.NewRecorder("test", 0)
		o := New("viewer", server(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}), recorder)
		ctx, cancel := context.WithCancel(t.Context())
		for _, uri := range []string{configMaps + "/snow", configMaps + "?watch=true"} {
			req, err := http.NewRequestWithContext(ctx, "GET", "http://cluster.test"+uri, nil)
			require.NoError(t, err)
			go func() { _, _ = o.RoundTrip(req) }()
		}
		synctest.Wait()
		assert.Equal(t, []trace.Answer{{Client: "viewer", Method: "GET", URI: configMaps + "/snow"}}, o.Pending())
		cancel()
		synctest.Wait()
		assert.Empty(t, o.Pending())
		assert.Len(t, events(recorder), 2)
	})
}

// TestWatch records each event as the client reads it, and the end.
func TestWatch(t *testing.T) {
	recorder := trace.NewRecorder("test", 0)
	stream := `{"type":"ADDED","object":{"kind":"ConfigMap","metadata":{"name":"snow","resourceVersion":"5"}}}
{"type":"ADDED","object":{"kind":"Table","metadata":{"resourceVersion":"6"},"rows":[{"object":{"kind":"PartialObjectMetadata","metadata":{"name":"ice","resourceVersion":"6"}}}]}}
{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}
{"type":"ERROR","object":{"kind":"Status","reason":"Expired"}}
`
	o := New("viewer", server(func(*http.Request) (*http.Response, error) { return answered(200, jsonMedia, stream), nil }), recorder)
	uri := configMaps + "?resourceVersion=4&watch=true"
	ask(t, o, "GET", uri, "", "")
	ask(t, o, "GET", uri, "", "")
	all := events(recorder)
	require.Len(t, all, 10)
	for i, want := range []trace.WatchEvent{
		{Type: "ADDED", Object: trace.Object{Kind: "ConfigMap", Name: "snow", Revision: 5}},
		{Type: "ADDED", Object: trace.Object{Kind: "PartialObjectMetadata", Name: "ice", Revision: 6}},
		{Type: "BOOKMARK", Object: trace.Object{Kind: "ConfigMap", Revision: 7}, InitialEventsEnd: true},
		{Type: "ERROR", Reason: "Expired"},
		{},
	} {
		want.Client, want.URI, want.Watch = "viewer", uri, 1
		got := all[i].(trace.WatchEvent)
		got.Object.Digest = ""
		assert.Equal(t, want, got)
		want.Watch, want.Asked = 2, 5
		got = all[i+5].(trace.WatchEvent)
		got.Object.Digest = ""
		assert.Equal(t, want, got)
	}
}

// A body that is too long to keep is an answer without objects.
func TestLongBody(t *testing.T) {
	recorder := trace.NewRecorder("test", 0)
	o := New("viewer", server(func(*http.Request) (*http.Response, error) {
		response := answered(200, jsonMedia, "")
		response.Body = io.NopCloser(io.LimitReader(spaces{}, maxKeptBytes+1))
		return response, nil
	}), recorder)
	ask(t, o, "GET", configMaps+"/snow", "", "")
	assert.Empty(t, events(recorder)[0].(trace.Answer).Objects)
}

// spaces is a body without end.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Two watches of one path are told apart by what they choose, and not by what is
// random.
func TestWatchName(t *testing.T) {
	name := func(uri string) string {
		u, err := url.ParseRequestURI(uri)
		require.NoError(t, err)
		return watchName(u)
	}
	one := name("/api/v1/configmaps?watch=true&fieldSelector=metadata.name%3Da&timeoutSeconds=300&resourceVersion=7")
	assert.Equal(t, one, name("/api/v1/configmaps?watch=true&fieldSelector=metadata.name%3Da&timeoutSeconds=411&resourceVersion=9"))
	assert.NotEqual(t, one, name("/api/v1/configmaps?watch=true&fieldSelector=metadata.name%3Db&timeoutSeconds=300&resourceVersion=7"))
}
