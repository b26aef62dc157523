package chain

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"snowglobe.test/envtest/fault"
)

// watchAnswer is the answer to a watch. It asks about each event as an event
// before it asks about it as a part of the answer.
type watchAnswer struct {
	*answer
	frames watchFrames
	gzip   gzipMembers
}

// WriteHeader implements http.ResponseWriter. Only an answer that is a watch has
// frames; an error has none.
func (w *watchAnswer) WriteHeader(code int) {
	if code == http.StatusOK && !w.begun {
		header := w.Header()
		w.frames.encoding = watchEncodingOf(header.Get("Content-Type"))
		w.gzip.on = w.frames.encoding != nil && header.Get("Content-Encoding") == "gzip"
	}
	w.answer.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *watchAnswer) Write(p []byte) (int, error) {
	switch {
	case w.frames.encoding == nil:
		return w.answer.Write(p)
	case w.gzip.on && w.gzip.keeps(p, w.x.edge.Active()):
		return len(p), nil
	case w.gzip.on && !w.silent: // without its beginning a member can't be read
		return w.pass(p)
	case w.gzip.on:
		return len(p), nil
	}
	if err := w.frames.add(p, w.tell); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush implements http.Flusher. Upstream flushes a compressed watch when a
// member is complete.
func (w *watchAnswer) Flush() {
	w.endMember()
	w.answer.Flush()
}

func (w *watchAnswer) endMember() {
	member, err := w.gzip.end()
	if err == nil && len(member) > 0 {
		err = w.frames.add(member, w.tell)
	}
	if err != nil {
		w.breakOff(io.ErrUnexpectedEOF)
	}
}

// finish is for a handler that has returned, perhaps in the middle of a frame.
func (w *watchAnswer) finish() {
	w.endMember()
	if rest := w.frames.rest; len(rest) > 0 {
		_ = w.send(rest) // it is the last, and a client that has gone misses nothing
	}
	w.answer.finish()
}

// tell sends a frame as often as the rules say.
func (w *watchAnswer) tell(frame []byte) error {
	if !w.x.edge.Active() || w.silent {
		return w.send(frame)
	}
	event, ok := w.frames.encoding.event(frame)
	if !ok {
		return w.send(frame)
	}
	w.catchUp()
	d, err := w.x.edge.At(w.x.traced.life, func() fault.Operation {
		op := event
		op.Point, op.Caller, op.Key = "watch/"+w.x.resource(), w.x.caller(), requestKey(w.x.req, w.x.info)
		return op
	})
	if err != nil {
		w.breakOff(io.ErrUnexpectedEOF)
		return nil
	}
	switch d.Kind {
	case fault.Drop:
		return nil
	case fault.Duplicate:
		if err := w.send(frame); err != nil {
			return err
		}
	case fault.Cancel:
		w.end(context.Canceled)
		return nil
	case fault.Fail:
		return w.fail(d.Err())
	}
	return w.send(frame)
}

// fail ends the watch with an error: one of the API is told as an event.
func (w *watchAnswer) fail(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		w.breakOff(err)
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
func (w *watchAnswer) send(frame []byte) error {
	if w.gzip.on {
		frame = compressed(frame)
	}
	_, err := w.answer.Write(frame)
	return err
}

// errorFrame is the frame of an event of type ERROR, in the watch's encoding.
func (w *watchAnswer) errorFrame(status *metav1.Status) ([]byte, error) {
	info, ok := runtime.SerializerInfoForMediaType(w.x.serializer.SupportedMediaTypes(), w.frames.encoding.mediaType)
	if !ok {
		return nil, errors.New("no serializer for " + w.frames.encoding.mediaType)
	}
	version := schema.GroupVersion{Version: "v1"}
	object, err := runtime.Encode(w.x.serializer.EncoderForVersion(info.Serializer, version), status)
	if err != nil {
		return nil, err
	}
	event := &metav1.WatchEvent{Type: string(watch.Error), Object: runtime.RawExtension{Raw: object}}
	encoded, err := runtime.Encode(w.x.serializer.EncoderForVersion(info.StreamSerializer.Serializer, version), event)
	if err != nil {
		return nil, err
	}
	var frame bytes.Buffer
	_, err = info.StreamSerializer.Framer.NewFrameWriter(&frame).Write(encoded)
	return frame.Bytes(), err
}
