package conformance_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/transcript"
	"snowglobe.test/internal/htmlpage"
)

var keepPage = flag.String("page", "", "write the page of TestPage to this file, to look at it")

// reported is a report of three cases: kept, broken, not applicable.
func reported(target string, broken bool) engine.Report {
	cases := []engine.Info{
		{ID: "S6/first", System: "S6", Area: "watch", Promise: "First.", Source: "KEP-2340; k8s.io/apiserver/pkg/storage/cacher/cacher.go, consistent reads", Level: suite.Core},
		{ID: "S6/second", System: "S6", Area: "watch", Promise: "Second <b>.", Source: "k8s.io/kube-openapi/pkg/handler3", Level: suite.Versioned, Failure: true},
		{ID: "S12/third", System: "S12", Area: "write", Promise: "Third.", Source: "sigs.k8s.io/structured-merge-diff/v6/merge/update.go, Update", Level: suite.Versioned},
	}
	report := engine.Report{
		Target: target, Cluster: target, Release: "v1.37.1", Took: 90 * time.Second,
		Date: time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC),
	}
	for _, c := range cases {
		report.Results = append(report.Results, engine.Result{Case: c, State: engine.Passed, Took: 12 * time.Millisecond})
	}
	report.Results[2].State, report.Results[2].Message, report.Results[2].Took = engine.NotApplicable, "needs control planes of its own: none can be started beside it", 0
	if broken {
		report.Results[1].State = engine.Failed
		report.Results[1].Finding = engine.Finding{
			Message: "Expected\n    <string>: 748\nto equal\n    <string>: <script>alert(1)</script>", Location: "watch.go:42", Step: "t.Expect(a).To(Equal(b))",
			Exchanges: []transcript.Exchange{{
				Server: "127.0.0.1:6443", Method: "GET", Path: "/api/v1/namespaces/a/configmaps?limit=1", Status: 200, Times: 3, At: time.Second, Took: time.Millisecond,
				Request: transcript.Message{Headers: []string{"Accept: application/json"}},
				Answer:  transcript.Message{Headers: []string{"Content-Type: application/json"}, Body: `{"kind":"ConfigMapList","items":[]}`},
			}, {
				Server: "127.0.0.1:6443", Method: "GET", Path: "/api/v1/configmaps?watch=true", Status: 200, Open: true, Times: 1,
				Events: []string{`{"type":"ADDED","object":{}}`},
			}},
		}
	}
	return report
}

func TestPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "made", "page.html")
	if *keepPage != "" {
		file = *keepPage
	}
	require.NoError(t, reports.WriteHTMLFile(file, reported("memory", false), reported("another", true)))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	text := string(content)
	for _, want := range []string{
		"Conformance of 2 targets", "3 promises of a Kubernetes API server (3 portable, 0 linked), 2 systems, 2 targets", "keeps all promises that apply to it", "breaks a promise", "v1.37.1 · 2026-11-24 · 1m30s of real time",
		`<a href="#S6"><b>S6</b> watch cache</a>`, "<span>2 of 2</span>", "<span>1 of 2</span>", `<span class="muted">not applicable</span>`,
		"Second &lt;b&gt;.", "&lt;script&gt;alert(1)&lt;/script&gt;", "needs control planes of its own",
		`<a href="https://github.com/kubernetes/enhancements/issues/2340">KEP-2340</a>`,
		`<a href="https://github.com/kubernetes/kubernetes/blob/v1.37.1/staging/src/k8s.io/apiserver/pkg/storage/cacher/cacher.go">`,
		`<a href="https://github.com/kubernetes/kube-openapi/tree/master/pkg/handler3">`,
		`<a href="https://github.com/kubernetes-sigs/structured-merge-diff/blob/master/merge/update.go">`,
		"/api/v1/namespaces/a/configmaps?limit=1", "3 times alike", "Accept: application/json", "&#34;kind&#34;: &#34;ConfigMapList&#34;", "200 OK, still open",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "ZgotmplZ")
	assert.NotContains(t, text, "<script>alert")
}

func TestPageOfOneCase(t *testing.T) {
	report := reported("memory", false)
	report.Results = report.Results[:1]
	file := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, reports.WriteHTMLFile(file, report))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(content), "<p>1 promise of a Kubernetes API server (1 portable, 0 linked), 1 system</p>")
}

// TestPageStandsAlone loads nothing, and lets in nothing but its own style and program.
func TestPageStandsAlone(t *testing.T) {
	var page bytes.Buffer
	require.NoError(t, reports.WriteHTML(&page, reported("memory", true)))
	text := page.String()
	assert.Contains(t, text, "Conformance of memory")
	for _, loads := range []string{" src=", "@import", "url(", "<link rel=\"stylesheet", " style="} {
		assert.NotContains(t, text, loads)
	}
	between := func(begin, end string) string {
		_, after, found := strings.Cut(text, begin)
		require.True(t, found, begin)
		inside, _, found := strings.Cut(after, end)
		require.True(t, found, end)
		return inside
	}
	policy := html.UnescapeString(between(`Content-Security-Policy" content="`, `"`))
	assert.Contains(t, policy, "style-src "+htmlpage.Hash(between("<style>", "</style>"))+";")
	assert.Contains(t, policy, "script-src "+htmlpage.Hash(between("<script>", "</script>"))+";")
	// What links point at inside the page is there.
	for _, anchor := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(text, -1) {
		assert.Contains(t, text, `id="`+anchor[1]+`"`)
	}
	assert.ErrorContains(t, reports.WriteHTML(&page), "needs a report")
}

func TestReadReport(t *testing.T) {
	folder := t.TempDir()
	read := func(content string) (engine.Report, error) {
		file := filepath.Join(folder, "report.json")
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		return reports.Read(file)
	}
	var document bytes.Buffer
	reports.JSON{Out: &document}.End(reported("memory", true))
	report, err := read(document.String())
	require.NoError(t, err)
	assert.Equal(t, reported("memory", true), report)
	for content, want := range map[string]string{
		"":   "is not a report: unexpected end of JSON input; write one with: snowglobe conformance --output json",
		"[]": "is not a report: json: cannot unmarshal array",
		"{}": "it names no target, or has no results",
		`{"target":"a","results":[{"case":{"id":"S1/a","system":"S1"},"state":"odd"}]}`: `the state "odd" of case "S1/a" is not known`,
		`{"target":"a","results":[{"state":"passed"}]}`:                                 "a case without a name",
	} {
		_, err := read(content)
		assert.ErrorContains(t, err, want, content)
	}
	_, err = reports.Read(filepath.Join(folder, "missing"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestDiff(t *testing.T) {
	a, b := reported("memory", false), reported("another", true)
	b.Results = append(b.Results[:2], engine.Result{Case: engine.Info{ID: "S12/fourth", Promise: "Fourth."}, State: engine.Passed})
	var text bytes.Buffer
	comparison := reports.Diff("a.json", a, "b.json", b)
	require.NoError(t, comparison.WriteText(&text))
	assert.Equal(t, `A is a.json: memory, v1.37.1
B is b.json: another, v1.37.1

S6/second: Second <b>.
  source: k8s.io/kube-openapi/pkg/handler3
  A passed
  B failed: Expected
        <string>: 748
    to equal
        <string>: <script>alert(1)</script>

S12/third: Third.
  source: sigs.k8s.io/structured-merge-diff/v6/merge/update.go, Update
  A not applicable: needs control planes of its own: none can be started beside it
  B does not have it

S12/fourth: Fourth.
  A does not have it
  B passed

3 of 4 cases differ
`, text.String())
	text.Reset()
	require.NoError(t, comparison.WriteJSON(&text))
	var read reports.Comparison
	require.NoError(t, json.Unmarshal(text.Bytes(), &read))
	assert.Equal(t, comparison, read)
	assert.Empty(t, reports.Diff("a", a, "a", a).Differences)
}
