package inject

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/internal/watchframe"
)

// watchResponse is the response to a watch. It asks the rules about each event (watch/...);
// the embedded response then asks them about the bytes (http/watch phase=stream).
type watchResponse struct {
	*response
	splitter *watchframe.Splitter // nil if the response is not split into events
	gzip     gzipMembers
}

// WriteHeader implements http.ResponseWriter. Only a successful watch has frames.
func (w *watchResponse) WriteHeader(code int) {
	if code == http.StatusOK && !w.begun {
		header := w.Header()
		w.splitter = watchframe.NewSplitter(header.Get("Content-Type"))
		w.gzip.on = w.splitter != nil && header.Get("Content-Encoding") == "gzip"
	}
	w.response.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *watchResponse) Write(p []byte) (int, error) {
	active := w.call.injector.Active()
	switch {
	case w.splitter == nil, !w.gzip.on && !active && w.splitter.WholeFrames(p):
		return w.response.Write(p)
	case w.gzip.on && w.gzip.keeps(p, active):
		return len(p), nil
	case w.gzip.on && !w.silent: // a member without its beginning cannot be read
		return w.pass(p)
	case w.gzip.on:
		return len(p), nil
	}
	if err := w.splitter.Add(p, w.deliver); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush implements http.Flusher. Upstream flushes when a gzip member is complete.
func (w *watchResponse) Flush() {
	w.endMember()
	w.response.Flush()
}

func (w *watchResponse) endMember() {
	member, err := w.gzip.end()
	if err == nil && len(member) > 0 {
		err = w.splitter.Add(member, w.deliver)
	}
	if err != nil {
		w.abort(io.ErrUnexpectedEOF)
	}
}

// finish is for a handler that has returned, perhaps in the middle of a frame.
func (w *watchResponse) finish() {
	w.endMember()
	if w.splitter != nil && len(w.splitter.Rest()) > 0 {
		_ = w.send(w.splitter.Rest()) // an error would mean that the client has gone
	}
	w.response.finish()
}

// deliver sends a frame as often as the rules say.
func (w *watchResponse) deliver(frame watchframe.Frame) error {
	if !w.call.injector.Active() || w.silent {
		return w.send(frame.Wire)
	}
	event, ok := eventIn(frame, w.splitter.MediaType())
	if !ok {
		return w.send(frame.Wire)
	}
	w.catchUp()
	return edge.Execute(w.call.active.client, w.call.injector, func() fault.Operation {
		op := event
		op.Point, op.Caller, op.Key = fault.WatchPoint+resourceOf(w.call.info), callerOf(w.call.req), keyOf(w.call.req, w.call.info)
		return op
	}, edge.Ways[error]{
		Proceed: func() error { return w.send(frame.Wire) },
		Fail:    w.fail,
		Drop:    func() error { return nil },
		Cancel: func() error {
			w.end(context.Canceled)
			return nil
		},
		Abort: func(error) error {
			w.abort(io.ErrUnexpectedEOF)
			return nil
		},
	})
}

// eventTypes are those that rules can be about.
var eventTypes = []string{string(watch.Added), string(watch.Modified), string(watch.Deleted), string(watch.Bookmark), string(watch.Error)}

// eventIn describes the event in a frame; false if the frame holds none.
func eventIn(frame watchframe.Frame, mediaType string) (fault.Operation, bool) {
	event, err := frame.Event()
	if err != nil || !slices.Contains(eventTypes, event.Type) {
		return fault.Operation{}, false
	}
	op := fault.Operation{Verb: strings.ToLower(event.Type)}
	if event.Type == string(watch.Error) {
		return op, true // a Status has no name
	}
	object, err := metadataOf(mediaType, event.Object.Raw)
	op.Namespace, op.Name = object.Namespace, object.Name
	return op, err == nil
}

// fail ends the watch with an error: an API error is sent as an ERROR event, any
// other breaks the connection.
func (w *watchResponse) fail(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		w.abort(err)
		return nil
	}
	object := status.Status()
	frame, err := w.errorFrame(&object)
	if err != nil {
		return err
	}
	err = w.send(frame)
	w.catchUp()
	w.end(errReplaced)
	return err
}

// send writes a frame, compressed if the watch is.
func (w *watchResponse) send(frame []byte) error {
	if w.gzip.on {
		frame = compressed(frame)
	}
	_, err := w.response.Write(frame)
	return err
}

// errorFrame is the frame of an event of type ERROR, in the watch's encoding.
func (w *watchResponse) errorFrame(status *metav1.Status) ([]byte, error) {
	mediaType, serializer := w.splitter.MediaType(), w.call.serializer
	info, ok := runtime.SerializerInfoForMediaType(serializer.SupportedMediaTypes(), mediaType)
	if !ok {
		return nil, errors.New("no serializer for " + mediaType)
	}
	version := schema.GroupVersion{Version: "v1"}
	object, err := runtime.Encode(serializer.EncoderForVersion(info.Serializer, version), status)
	if err != nil {
		return nil, err
	}
	event := &metav1.WatchEvent{Type: string(watch.Error), Object: runtime.RawExtension{Raw: object}}
	encoded, err := runtime.Encode(serializer.EncoderForVersion(info.StreamSerializer.Serializer, version), event)
	if err != nil {
		return nil, err
	}
	var frame bytes.Buffer
	_, err = info.StreamSerializer.Framer.NewFrameWriter(&frame).Write(encoded)
	return frame.Bytes(), err
}
