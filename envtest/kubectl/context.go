package kubectl

import (
	"context"
	"io"
	"net/http"
)

// untilDone ends the requests of a transport with a context: kubectl makes some with
// context.Background, and would go on with them.
type untilDone struct {
	next http.RoundTripper
	ctx  context.Context
}

// RoundTrip implements http.RoundTripper.
func (u untilDone) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	unlink := context.AfterFunc(u.ctx, func() { cancel(context.Cause(u.ctx)) })
	response, err := u.next.RoundTrip(req.WithContext(ctx))
	release := func() { unlink(); cancel(nil) }
	if err != nil {
		release()
		return nil, err
	}
	response.Body = releasingBody{response.Body, release}
	return response, nil
}

// WrappedRoundTripper implements k8s.io/apimachinery/pkg/util/net.RoundTripperWrapper.
func (u untilDone) WrappedRoundTripper() http.RoundTripper { return u.next }

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
