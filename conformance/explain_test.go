package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/target"
)

// faked is a source of a server of the test.
type faked struct{ url string }

// Open implements engine.Source[*suite.T].
func (f faked) Open(ctx context.Context) (engine.Target[*suite.T], error) {
	cluster := &suite.Cluster{Name: "a fake", Config: &rest.Config{Host: f.url, BearerToken: "not-to-be-shown"}}
	target.Learn(ctx, cluster)
	return cluster, nil
}

// String implements engine.Source[*suite.T].
func (f faked) String() string { return "a fake" }

// sick returns a source whose server answers little, and none of its health checks well.
func sick(t *testing.T) faked {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"major": "1", "minor": "35+", "gitVersion": "v1.35.4-vendor"}`)
	})
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE kubernetes_feature_enabled gauge\n"+
			"kubernetes_feature_enabled{name=\"On\",stage=\"BETA\"} 1\nkubernetes_feature_enabled{name=\"Off\",stage=\"\"} 0\n")
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "snowed under", http.StatusInternalServerError)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return faked{server.URL}
}

// TestFailureReadsLikeABugReport has a case of the suite fail.
func TestFailureReadsLikeABugReport(t *testing.T) {
	cases, err := engine.Select(conformance.Cases(), engine.Selection{Focus: "^S15/readyz-answers-ok$"})
	require.NoError(t, err)
	var text bytes.Buffer
	report, err := engine.Run(t.Context(), sick(t), cases, reports.Text{Out: &text})
	require.NoError(t, err)
	assert.Regexp(t, `promised  .+
     source    .+
     found     GET /readyz answered 500: snowed under
(?:.*\n)*     step      startup\.go:\d+: answeredOK\(ctx, t, "/readyz", "/livez", "/healthz"\)
     asked     GET /readyz -> 500 Internal Server Error
               < snowed under
`, text.String())
	result := report.Results[0]
	require.Len(t, result.Exchanges, 1)
	assert.Contains(t, fmt.Sprint(result.Exchanges[0].Request.Headers), "Authorization: Bearer [token ")
	assert.NotContains(t, fmt.Sprint(result), "not-to-be-shown")
	junit := readJUnit(t, report)
	told := junit.TestSuites[0].TestCases[0].Failure.Description
	assert.Contains(t, told, "< snowed under")
	assert.Contains(t, told, "> Authorization: Bearer [token ")
}

// TestExplainIsShort says how many requests it leaves out.
func TestExplainIsShort(t *testing.T) {
	many := made("S0/asks", suite.Needs{}, func(ctx context.Context, t *suite.T) {
		for i := range 5 {
			t.Get(ctx, fmt.Sprint("/missing/", i))
		}
		fails(ctx, t)
	})
	report, err := engine.Run(t.Context(), sick(t), []suite.Case{many}, nil)
	require.NoError(t, err)
	short := reports.Explain(report.Results[0], 3)
	assert.Equal(t, []string{"/missing/2", "/missing/3", "/missing/4"}, regexp.MustCompile(`/missing/\d`).FindAllString(short, -1))
	assert.Contains(t, short, "(and 2 requests before: see --html, --junit or --output json)")
	assert.Equal(t, 5, strings.Count(reports.Explain(report.Results[0], 10), "/missing/"))
}

// TestNotApplicable is for cases that the target is too old for, or has switched off.
func TestNotApplicable(t *testing.T) {
	at := func(since string, gates ...string) suite.Case {
		c := made("S0/"+since+strings.Join(gates, ""), suite.Needs{}, passes)
		c.Since, c.Gates = since, gates
		return c
	}
	cases := []suite.Case{at("1.35"), at("1.36"), at("", "On"), at("", "On", "Off"), at("", "Missing")}
	report, err := engine.Run(t.Context(), sick(t), cases, nil)
	require.NoError(t, err)
	assert.Equal(t, "v1.35.4-vendor", report.Release)
	assert.Equal(t, []string{
		"S0/1.35 passed",
		"S0/1.36 not applicable needs release 1.36 or newer: 1.35 runs at a fake",
		"S0/On passed",
		"S0/OnOff not applicable needs feature gate Off, which is off at a fake",
		"S0/Missing not applicable needs feature gate Missing: it is not known whether it is on at a fake",
	}, plain(report))

	report, err = engine.Run(t.Context(), nowhere{}, cases[:1], nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"S0/1.35 not applicable needs release 1.35 or newer: it is not known which one runs at nowhere"}, plain(report))
}
