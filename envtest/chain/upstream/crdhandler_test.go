package upstream

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apiserver/pkg/server/mux"
)

func TestCRDHandler(t *testing.T) {
	paths := mux.NewPathRecorderMux("test")
	_, err := CRDHandlerIn(paths)
	assert.ErrorContains(t, err, "what answers /apis is a <nil>")
	paths.Handle("/apis", http.NotFoundHandler())
	_, err = CRDHandlerIn(paths)
	assert.ErrorContains(t, err, "what answers /apis is a http.HandlerFunc")
}
