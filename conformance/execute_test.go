package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
)

var lineNumber = regexp.MustCompile(`_test\.go:\d+`)

func TestExecuteRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\n"), 0o600))
	for want, opts := range map[string]conformance.Options{
		`store "disk" is not known; use "memory"`: {Store: "disk"},
		`both a store and a kubeconfig`:           {Store: "memory", Kubeconfig: file},
		`lives in real time`:                      {Kubeconfig: file, VirtualTime: true},
		`no such file`:                            {Kubeconfig: file + "s"},
		`invalid configuration`:                   {Kubeconfig: file},
		`do not work in virtual time`:             {Store: "embedded", VirtualTime: true},
		`is not an etcd URL`:                      {Store: "ftp://127.0.0.1:1"},
		`none of the`:                             {Selection: engine.Selection{Focus: "no such case"}},
		`focus is not a regular expression`:       {Selection: engine.Selection{Focus: "("}},
		`skip is not a regular expression`:        {Selection: engine.Selection{Skip: "("}},
		`label filter "S6 & core": Invalid token '&'.  Did you mean '&&'?; write one`: {Selection: engine.Selection{Labels: "S6 & core"}},
		`matches focus "S6/", label filter "S7"`:                                      {Selection: engine.Selection{Focus: "S6/", Labels: "S7"}},
		`a release is for the cluster of a kubeconfig`:                                {Release: "v1.36.0"},
		`"soon" is not a release`:                                                     {Kubeconfig: file, Release: "soon"},
		`output "xml" is not known; use "text" or "json`:                              {Output: "xml"},
	} {
		var out bytes.Buffer
		opts.Out = &out
		_, err := conformance.Execute(t.Context(), opts)
		assert.ErrorContains(t, err, want, "%+v", opts)
	}
}

func TestExecuteUnreachableStore(t *testing.T) {
	t.Parallel() // it waits for what does not answer
	_, err := conformance.Execute(t.Context(), conformance.Options{Store: "http://127.0.0.1:1", Selection: engine.Selection{Focus: "S15/readyz-answers-ok"}, Out: &bytes.Buffer{}})
	assert.True(t, err != nil && !errors.Is(err, engine.ErrFailed) && strings.Contains(err.Error(), "127.0.0.1:1"), "error %v", err)
}

func TestExecute(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "junit.xml")
	report, err := conformance.Execute(context.Background(), conformance.Options{
		VirtualTime: true, Selection: engine.Selection{Focus: "^discovery$"}, Output: reports.OutputJSON, Out: &out, JUnit: file,
	})
	require.NoError(t, err)
	var read engine.Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &read), "in %s", &out)
	assert.True(t, len(read.Results) == len(report.Results) && read.Count(engine.Passed) != 0 && read.VirtualTime, "report %+v", read)
	_, err = os.Stat(file)
	assert.NoError(t, err)
}
