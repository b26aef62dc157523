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

	"go.uber.org/goleak"

	"snowglobe.test/conformance"
)

var lineNumber = regexp.MustCompile(`_test\.go:\d+`)

func TestExecuteRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, opts := range map[string]conformance.Options{
		`store "disk" is not known; use "memory"`:        {Store: "disk"},
		`both a store and a kubeconfig`:                  {Store: "memory", Kubeconfig: file},
		`lives in real time`:                             {Kubeconfig: file, VirtualTime: true},
		`no such file`:                                   {Kubeconfig: file + "s"},
		`invalid configuration`:                          {Kubeconfig: file},
		`do not work in virtual time`:                    {Store: "embedded", VirtualTime: true},
		`is not an etcd URL`:                             {Store: "ftp://127.0.0.1:1"},
		`none of the`:                                    {Focus: "no such case"},
		`focus is not a regular expression`:              {Focus: "("},
		`output "xml" is not known; use "text" or "json`: {Output: "xml"},
	} {
		var out bytes.Buffer
		opts.Out = &out
		if _, err := conformance.Execute(t.Context(), opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", opts, err, want)
		}
	}
}

func TestExecuteUnreachableStore(t *testing.T) {
	_, err := conformance.Execute(t.Context(), conformance.Options{Store: "http://127.0.0.1:1", Focus: "S15/readyz-answers-ok", Out: &bytes.Buffer{}})
	if err == nil || errors.Is(err, conformance.ErrFailed) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("error %v", err)
	}
}

func TestExecute(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "junit.xml")
	report, err := conformance.Execute(context.Background(), conformance.Options{
		VirtualTime: true, Focus: "^startup$", Output: conformance.OutputJSON, Out: &out, JUnit: file,
	})
	if err != nil {
		t.Fatal(err)
	}
	var read conformance.Report
	if err := json.Unmarshal(out.Bytes(), &read); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if len(read.Results) != len(report.Results) || read.Count(conformance.Passed) == 0 || !read.VirtualTime {
		t.Errorf("report %+v", read)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
