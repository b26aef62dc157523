package ledger

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/klog/v2"
)

// TestInfo tells writes from reads, and says nothing of what a read asks for, as that is the server's.
func TestInfo(t *testing.T) {
	defer klog.CaptureState().Restore()
	var said bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&said)
	const path = "/base/api/v1/namespaces/default/pods?labelSelector=color+in+red"
	ledger := &Ledger{base: "/base"}
	for method, verb := range map[string]string{http.MethodPost: "create", http.MethodDelete: "deletecollection"} {
		info := ledger.info(httptest.NewRequest(method, path, nil))
		if assert.NotNil(t, info, method) {
			assert.Equal(t, verb, info.Verb)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
		assert.Nil(t, ledger.info(httptest.NewRequest(method, path, nil)), method)
	}
	klog.Flush()
	assert.Empty(t, said.String())
}
