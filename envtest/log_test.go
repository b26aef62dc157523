package envtest_test

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"snowglobe.test/envtest"
)

// TestLog keeps the logs of two servers apart from each other and from that of
// the test itself.
func TestLog(t *testing.T) {
	var copied bytes.Buffer
	first := envtest.Start(t, envtest.WithLog(&copied))
	second := envtest.Start(t)
	klog.Info("a line of the test's own")
	for _, cp := range []*envtest.ControlPlane{first, second} {
		if err := cp.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		const once = "Loaded 15 validating admission"
		if n := strings.Count(cp.Log(), "validating admission controller(s) successfully"); n != 1 {
			t.Errorf("the log of %s has %d lines like %q, want its own one", cp.Name(), n, once)
		}
		if strings.Contains(cp.Log(), "the test's own") {
			t.Errorf("the log of %s has a line of the test", cp.Name())
		}
	}
	if copied.String() != first.Log() {
		t.Error("the copy of the log is not the log")
	}
}
