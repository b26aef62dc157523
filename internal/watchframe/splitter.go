package watchframe

import (
	"bytes"
	"errors"
	"io"
	"mime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Splitter finds the frames of a stream in pieces. Make it with NewSplitter.
type Splitter struct {
	encoding *encoding
	rest     []byte // the beginning of a frame
	body     []byte // of the frame that was found last
	source   source // of upstream's framer
}

// source is what upstream's framer reads.
type source struct{ bytes.Reader }

// Close implements io.Closer.
func (*source) Close() error { return nil }

// maxKeptBytes is the largest frame whose memory is kept for the next one.
const maxKeptBytes = 64 << 10

// Frame is one frame of the stream of a watch.
type Frame struct {
	// Wire is the frame as it stands in the stream, framing included.
	Wire     []byte
	body     []byte // what the frame holds; nil if it is not readable
	encoding *encoding
}

// errUnreadable is about a frame that upstream's framer refuses.
var errUnreadable = errors.New("not a frame of a watch")

// Event decodes the event that the frame holds. Its object is still encoded.
func (f Frame) Event() (*metav1.WatchEvent, error) {
	if f.body == nil {
		return nil, errUnreadable
	}
	event := &metav1.WatchEvent{}
	return event, f.encoding.decode(f.body, event)
}

// NewSplitter returns a Splitter for a Content-Type, nil if no watch has it.
func NewSplitter(contentType string) *Splitter {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil
	}
	if e := encodings[mediaType]; e != nil {
		return &Splitter{encoding: e}
	}
	return nil
}

// MediaType is that of the objects in the stream, such as "application/json".
func (s *Splitter) MediaType() string { return s.encoding.mediaType }

// WholeFrames reports whether p, which comes next, surely has whole frames
// and nothing else; then it need not be added, since what follows is split as
// well without it. It is cheap, and may be false without need.
func (s *Splitter) WholeFrames(p []byte) bool {
	return len(s.rest) == 0 && s.encoding.whole != nil && s.encoding.whole(p)
}

// Add calls each for every frame that p completes, until it returns an error. Frames
// are only lent. What can't be read is one too: all bytes are in a frame or in Rest.
func (s *Splitter) Add(p []byte, each func(Frame) error) error {
	searched := len(s.rest) // there is no whole frame in it
	if searched > 0 {
		s.rest = append(s.rest, p...)
		p = s.rest
	}
	for {
		frame, ok := s.first(p, searched)
		if !ok {
			break
		}
		if err := each(frame); err != nil {
			return err
		}
		p, searched = p[len(frame.Wire):], 0
	}
	if cap(s.rest) > maxKeptBytes {
		s.rest = nil
	}
	if cap(s.body) > maxKeptBytes {
		s.body = nil
	}
	s.rest = append(s.rest[:0], p...)
	return nil
}

// Rest is the beginning of a frame that is not complete.
func (s *Splitter) Rest() []byte { return s.rest }

// first returns the first frame of p, false if p does not have all of it. No frame
// ends within the searched bytes at the beginning of p.
func (s *Splitter) first(p []byte, searched int) (Frame, bool) {
	for {
		size := s.encoding.candidate(p, searched)
		if size == 0 {
			return Frame{}, false
		}
		body, err := s.read(p[:size])
		switch {
		case err == nil:
			wire := s.encoding.size(p[:size], body, size-s.source.Len())
			return Frame{Wire: p[:wire:wire], body: body, encoding: s.encoding}, true
		case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return Frame{Wire: p[:size:size]}, true
		case size == len(p):
			return Frame{}, false
		}
		searched = size
	}
}

// read returns what upstream's framer reads as the first frame of p. An end in the
// middle of it is io.EOF or io.ErrUnexpectedEOF.
func (s *Splitter) read(p []byte) ([]byte, error) {
	if len(s.body) < len(p) {
		s.body = make([]byte, len(p))
	}
	s.source.Reset(p)
	n, err := s.encoding.framer.NewFrameReader(&s.source).Read(s.body[:len(p)])
	return s.body[:n:n], err
}
