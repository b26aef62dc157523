//go:build !snowglobe_light

package kubectl

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// untilDone ends the requests of a command with a context: kubectl makes some with
// context.Background, and would go on with them.
type untilDone struct {
	ctx context.Context
	cut atomic.Bool // the context has ended a request, or the command asked later
}

// wrap is for rest.Config.Wrap.
func (u *untilDone) wrap(next http.RoundTripper) http.RoundTripper {
	return untilDoneTransport{u, next}
}

type untilDoneTransport struct {
	*untilDone
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (u untilDoneTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if u.ctx.Err() != nil {
		return u.late(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	unlink := context.AfterFunc(u.ctx, func() {
		u.cut.Store(true)
		cancel(context.Cause(u.ctx))
	})
	response, err := u.next.RoundTrip(req.WithContext(ctx))
	release := func() { unlink(); cancel(nil) }
	if err != nil {
		release()
		return nil, err
	}
	response.Body = releasingBody{response.Body, release}
	return response, nil
}

// late answers a request that kubectl makes after the context has ended. What waits for an
// object, like rollout status, would watch it again and again; it goes on, and ends, when it has
// to list the object instead, and learns that it is gone.
func (u untilDoneTransport) late(req *http.Request) (*http.Response, error) {
	u.cut.Store(true)
	query := req.URL.Query()
	switch {
	case req.Method != http.MethodGet || !query.Has("fieldSelector"):
		return nil, context.Cause(u.ctx)
	case query.Has("watch"):
		return answer(req, http.StatusUnprocessableEntity, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`), nil
	default:
		return answer(req, http.StatusOK, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`), nil
	}
}

func answer(req *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
	}
}

// WrappedRoundTripper implements k8s.io/apimachinery/pkg/util/net.RoundTripperWrapper.
func (u untilDoneTransport) WrappedRoundTripper() http.RoundTripper { return u.next }

// releasingBody calls release when it is closed.
type releasingBody struct {
	io.ReadCloser
	release func()
}

// Close implements io.Closer.
func (b releasingBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
