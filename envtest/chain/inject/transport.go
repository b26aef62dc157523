package inject

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

// transport asks the rules before those requests of the server that describe knows.
type transport struct {
	next     http.RoundTripper
	injector *edge.Injector
	describe func(*http.Request) (fault.Operation, bool)
	// answered may be nil. It is called before a response, which its error replaces.
	answered func(context.Context, fault.Operation) error
}

// WrappedRoundTripper implements k8s.io/apimachinery/pkg/util/net.RoundTripperWrapper.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	op, ok := fault.Operation{}, false
	if t.injector.Active() {
		op, ok = t.describe(req)
	}
	if !ok {
		return t.next.RoundTrip(req)
	}
	r := t.call(req, op)
	if r.err != nil || t.answered == nil {
		return r.response, r.err
	}
	if err := t.answered(req.Context(), op); err != nil {
		_ = r.response.Body.Close()
		return nil, err
	}
	return r.response, nil
}

// reply is what a RoundTripper returns.
type reply struct {
	response *http.Response
	err      error
}

// call makes a request as the rules say. An injected error with an HTTP code
// becomes a response, as if the server called had sent it.
func (t *transport) call(req *http.Request, op fault.Operation) reply {
	sent := false
	defer func() {
		if !sent && req.Body != nil {
			_ = req.Body.Close()
		}
	}()
	var discardErr error
	return edge.Execute(req.Context(), t.injector, func() fault.Operation { return op }, edge.Ways[reply]{
		Proceed: func() reply {
			if discardErr != nil {
				return reply{err: discardErr}
			}
			sent = true
			response, err := t.next.RoundTrip(req)
			return reply{response, err}
		},
		Discard: func() { discardErr = t.discard(req) },
		Fail: func(err error) reply {
			response, err := responseOf(req, err)
			return reply{response, err}
		},
	})
}

// discard sends a copy of a request and throws the response away. The request keeps
// its body and can still be sent.
func (t *transport) discard(req *http.Request) error {
	same := req.Clone(req.Context())
	if req.Body != nil && req.Body != http.NoBody {
		body, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return fmt.Errorf("read the body of a request that a rule repeats: %w", err)
		}
		req.Body, same.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
	}
	if response, err := t.next.RoundTrip(same); err == nil {
		_ = response.Body.Close()
	}
	return nil
}

// responseOf turns an error with an HTTP code into a response, and returns others.
func responseOf(req *http.Request, err error) (*http.Response, error) {
	var coded apierrors.APIStatus
	if !errors.As(err, &coded) {
		return nil, err
	}
	status := coded.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	code := cmp.Or(int(status.Code), http.StatusInternalServerError)
	header := http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), StatusCode: code, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}, nil
}
