package chain

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
)

// bentCall carries the requests that the server makes itself, and asks before
// each that describe knows.
type bentCall struct {
	next     http.RoundTripper
	edge     *fault.Injector
	describe func(*http.Request) (fault.Operation, bool)
	// answered is asked before an answer is handed over; nil is not asked.
	answered func(context.Context, fault.Operation) error
}

// WrappedRoundTripper implements k8s.io/apimachinery/pkg/util/net.RoundTripperWrapper.
func (b *bentCall) WrappedRoundTripper() http.RoundTripper { return b.next }

// RoundTrip implements http.RoundTripper.
func (b *bentCall) RoundTrip(req *http.Request) (*http.Response, error) {
	if !b.edge.Active() {
		return b.next.RoundTrip(req)
	}
	op, ok := b.describe(req)
	if !ok {
		return b.next.RoundTrip(req)
	}
	response, err := bend(req, b.edge, op, b.next.RoundTrip)
	if err != nil || b.answered == nil {
		return response, err
	}
	if err := b.answered(req.Context(), op); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// bend makes a request, bent as the rules say. An error that has a code comes as
// an answer, as from whoever was asked.
func bend(req *http.Request, edge *fault.Injector, op fault.Operation, do func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	sent := false
	if req.Body != nil {
		defer func() {
			if !sent {
				_ = req.Body.Close()
			}
		}()
	}
	d, err := edge.At(req.Context(), func() fault.Operation { return op })
	if err != nil {
		return nil, err
	}
	switch d.Kind {
	case fault.Fail:
		return answerOf(req, d.Err())
	case fault.LoseReply:
		sent = true
		if response, err := do(req); err == nil {
			_ = response.Body.Close()
		}
		return answerOf(req, d.Err())
	case fault.Drop:
		return nil, edge.Lost(req.Context())
	case fault.Cancel:
		return nil, context.Canceled
	case fault.Duplicate:
		first, err := copyOf(req)
		if err != nil {
			return nil, err
		}
		if response, err := do(first); err == nil {
			_ = response.Body.Close()
		}
	}
	sent = true
	return do(req)
}

// copyOf returns a request that is the same as one that is not sent yet.
func copyOf(req *http.Request) (*http.Request, error) {
	same := req.Clone(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		return same, nil
	}
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the body of a request that a rule duplicates: %w", err)
	}
	req.Body, same.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
	return same, nil
}

// answerOf makes an answer out of an error with a code; of others there is none.
func answerOf(req *http.Request, err error) (*http.Response, error) {
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
