package upstream

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// countingServer answers every request, counts them, and keeps the last one's context.
type countingServer struct {
	asked int
	last  context.Context
}

func (s *countingServer) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked++
	s.last = req.Context()
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("index"))}, nil
}

// TestOpenAPIIndex polls the index every five seconds, as upstream does, and has a
// schema change after a while.
func TestOpenAPIIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polling, server := NewOpenAPIPolling(), &countingServer{}
		transport := polling.CacheIndex(server)
		poll := func(during time.Duration, path string) int {
			before := server.asked
			for range during / (5 * time.Second) {
				time.Sleep(5 * time.Second)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server"+path, nil)
				require.NoError(t, err)
				response, err := transport.RoundTrip(req)
				require.NoError(t, err)
				body, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				assert.Equal(t, "index", string(body))
			}
			return server.asked - before
		}
		const index = "/openapi/v3"
		assert.Equal(t, 12, poll(schemaSettling, index), "after the start")
		assert.Equal(t, 10, poll(10*idlePoll, index), "idle")
		assert.Equal(t, 120, poll(10*idlePoll, index+"/apis/apps/v1"), "a schema")
		polling.SchemasChange()
		assert.Equal(t, 12, poll(schemaSettling, index), "after a change")
		assert.Equal(t, 1, poll(idlePoll, index), "idle again")
	})
}
