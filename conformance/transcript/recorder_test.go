package transcript_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance/transcript"
)

const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyb2JvdCJ9.c2lnbmF0dXJl"

// served is a client, whose exchanges are recorded, of a server of a few paths.
func served(t *testing.T) (client *http.Client, url string, recorder *transcript.Recorder) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "session=secret")
		w.Header().Set("Audit-Id", "a-1")
		fmt.Fprintf(w, "{\"token\": %q}\n", jwt)
	})
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("long ", 100_000))
	})
	mux.HandleFunc("/binary", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		_, _ = w.Write([]byte("k8s\x00\xff\xfe"))
	})
	mux.HandleFunc("/things", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json;stream=watch")
		for i := range 30 {
			fmt.Fprintf(w, "{\"type\":\"ADDED\",\"object\":{\"n\":%d}}\n", i)
		}
		if r.URL.Query().Has("follow") {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	recorder = transcript.NewRecorder()
	return &http.Client{Transport: recorder.Wrap(http.DefaultTransport)}, server.URL, recorder
}

// ask makes a request, and reads its answer to the end.
func ask(t *testing.T, client *http.Client, method, url, body string, header ...string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

func TestRecordsWithoutCredentials(t *testing.T) {
	client, url, recorder := served(t)
	ask(t, client, http.MethodPost, url+"/token?as="+jwt, `{"key":"`+jwt+`"}`,
		"Authorization", "Bearer "+jwt, "Impersonate-User", "jane", "X-Api-Key", "secret")
	ask(t, client, http.MethodGet, url+"/missing", "", "Authorization", "Basic c2VjcmV0")
	got := recorder.Exchanges()
	require.Len(t, got, 2)
	assert.Regexp(t, `^POST /token\?as=\[token \w+\] -> 200 OK$`, got[0].String())
	assert.Regexp(t, `^\{"key":"\[token \w+\]"\}$`, got[0].Request.Body)
	assert.Regexp(t, `^\{"token": "\[token \w+\]"\}$`, got[0].Answer.Body)
	assert.Contains(t, got[0].Request.Headers, "Impersonate-User: jane")
	assert.Contains(t, got[0].Answer.Headers, "Audit-Id: a-1")
	assert.Equal(t, "GET /missing -> 404 Not Found", got[1].String())
	assert.Contains(t, got[1].Request.Headers, "Authorization: Basic (8 characters)")
	assert.Regexp(t, `^POST [^\n]+ -> 200 OK\n> Authorization: Bearer \[token \w+\]\n(> .+\n)+< Audit-Id: a-1\n(< .+\n)*< \{"token": .*\}$`, got[0].Whole())
	assert.NotContains(t, fmt.Sprint(got), "secret")
	assert.NotContains(t, fmt.Sprint(got), jwt)
	assert.NotContains(t, fmt.Sprint(got), "c2VjcmV0")
}

func TestRecordsTheLast(t *testing.T) {
	client, url, recorder := served(t)
	for i := range 30 {
		ask(t, client, http.MethodGet, fmt.Sprint(url, "/missing?n=", i), "")
	}
	got := recorder.Exchanges()
	assert.Len(t, got, 20)
	assert.Equal(t, "GET /missing?n=29 -> 404 Not Found", got[19].String())
}

func TestCountsWhatIsTheSame(t *testing.T) {
	client, url, recorder := served(t)
	for range 30 {
		ask(t, client, http.MethodGet, url+"/missing", "")
	}
	ask(t, client, http.MethodGet, url+"/token", "")
	got := recorder.Exchanges()
	require.Len(t, got, 2)
	assert.Equal(t, "GET /missing -> 404 Not Found, 30 times", got[0].String())
}

func TestShortens(t *testing.T) {
	client, url, recorder := served(t)
	ask(t, client, http.MethodPut, url+"/long", strings.Repeat("ask ", 10_000))
	ask(t, client, http.MethodGet, url+"/binary", "")
	got := recorder.Exchanges()
	require.Len(t, got, 2)
	for body, end := range map[string]string{got[0].Request.Body: "... (40000 bytes)", got[0].Answer.Body: "... (500000 bytes)"} {
		assert.Less(t, len(body), 5000)
		assert.Truef(t, strings.HasSuffix(body, end), "it ends with %q", body[len(body)-20:])
	}
	assert.Equal(t, "(6 bytes of application/vnd.kubernetes.protobuf)", got[1].Answer.Body)
	for line := range strings.SplitSeq(got[0].Brief(), "\n") {
		assert.Less(t, len(line), 400)
	}
}

func TestRecordsWatches(t *testing.T) {
	client, url, recorder := served(t)
	ask(t, client, http.MethodGet, url+"/things?watch=true", "")
	resp, err := client.Get(url + "/things?watch=1&follow")
	require.NoError(t, err)
	_, err = io.ReadFull(resp.Body, make([]byte, 100))
	require.NoError(t, err)
	for i := range 30 { // what goes on stays, however old it is
		ask(t, client, http.MethodGet, fmt.Sprint(url, "/missing?n=", i), "")
	}
	got := recorder.Exchanges()
	require.Len(t, got, 20)
	assert.Equal(t, "GET /things?watch=1&follow -> 200 OK, still open", got[0].String())
	assert.Equal(t, `{"type":"ADDED","object":{"n":0}}`, got[0].Events[0])
	require.NoError(t, resp.Body.Close())

	ask(t, client, http.MethodGet, url+"/things?watch=true", "")
	got = recorder.Exchanges()
	last := got[len(got)-1]
	assert.Len(t, last.Events, 20)
	assert.Equal(t, `{"type":"ADDED","object":{"n":29}}`, last.Events[19])
	assert.Equal(t, 3, strings.Count(last.Brief(), "\n< "), "%s", last.Brief())
}

func TestRecordsErrors(t *testing.T) {
	client, _, recorder := served(t)
	_, err := client.Get("http://127.0.0.1:1/nobody")
	require.Error(t, err)
	got := recorder.Exchanges()
	require.Len(t, got, 1)
	assert.Contains(t, got[0].String(), "GET /nobody -> dial tcp 127.0.0.1:1")
}
