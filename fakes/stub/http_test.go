package stub_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/fakes/stub"
)

func TestWriteError(t *testing.T) {
	busy := stub.Status{Code: 429, Header: http.Header{"Retry-After": {"7"}}, Body: []byte("busy")}
	for _, c := range []struct {
		err        error
		code       int
		retryAfter string
		body       string
	}{
		{errors.New("disk full"), 500, "", "disk full\n"},
		{busy, 429, "7", "busy"},
		{fmt.Errorf("wrapped: %w", busy), 429, "7", "busy"},
		{stub.Status{Code: 200, Body: []byte("garbage")}, 200, "", "garbage"},
		{stub.Status{}, 500, "", "a rule answers with stub.Status and code 0: set it to 200 or more\n"},
		{stub.Status{Code: 100}, 500, "", "a rule answers with stub.Status and code 100: set it to 200 or more\n"},
	} {
		w := httptest.NewRecorder()
		stub.WriteError(w, c.err)
		assert.Equal(t, c.code, w.Code, c.err)
		assert.Equal(t, c.retryAfter, w.Header().Get("Retry-After"), c.err)
		assert.Equal(t, c.body, w.Body.String(), c.err)
	}
	assert.Equal(t, "HTTP 429 Too Many Requests", busy.Error())
}

func TestErrBreak(t *testing.T) {
	eachProtocol(t, func(t *testing.T, serve func(http.Handler) (*stub.Server, *http.Client)) {
		s, client := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			stub.WriteError(w, fmt.Errorf("wrapped: %w", stub.ErrBreak))
		}))
		_, err := get(client, s.URL())
		assert.Error(t, err)
		assert.NoError(t, s.Stop(t.Context()))
	})
}
