package watchframe

import (
	"errors"
	"mime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Splitter finds the frames of a stream in pieces. Make it with NewSplitter.
type Splitter struct {
	encoding *encoding
	rest     []byte // the beginning of a frame
}

// maxKeptBytes is the largest frame whose memory is kept for the next one.
const maxKeptBytes = 64 << 10

// Frame is one frame of the stream of a watch.
type Frame struct {
	// Wire is the frame as it stands in the stream, framing included.
	Wire     []byte
	body     []byte // what the frame holds; nil if it is not readable
	encoding *encoding
}

// errUnreadable is about a frame in which there is no value.
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
		size, body := s.encoding.first(p, searched)
		if size == 0 {
			break
		}
		if err := each(Frame{Wire: p[:size:size], body: body, encoding: s.encoding}); err != nil {
			return err
		}
		p, searched = p[size:], 0
	}
	if cap(s.rest) > maxKeptBytes {
		s.rest = nil
	}
	s.rest = append(s.rest[:0], p...)
	return nil
}

// Rest is the beginning of a frame that is not complete.
func (s *Splitter) Rest() []byte { return s.rest }
