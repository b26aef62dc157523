package chain

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"io"
	"mime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"snowglobe.test/envtest/fault"
)

// watchFrames finds the frames of a watch, one for each event, in what its
// handler writes, however it is cut.
type watchFrames struct {
	encoding *watchEncoding // nil if nothing is known of its frames
	rest     []byte         // the beginning of a frame
}

// keepFrameBytes is how large a frame may have been whose memory is kept for the
// next one.
const keepFrameBytes = 64 << 10

// add calls frame for each frame that p completes. The frame is only lent.
func (f *watchFrames) add(p []byte, frame func([]byte) error) error {
	if len(f.rest) > 0 {
		f.rest = append(f.rest, p...)
		p = f.rest
	}
	for {
		n := f.encoding.length(p)
		if n == 0 {
			break
		}
		if err := frame(p[:n:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	if cap(f.rest) > keepFrameBytes {
		f.rest = nil
	}
	f.rest = append(f.rest[:0], p...)
	return nil
}

// watchEncoding is how the events of a watch are written.
type watchEncoding struct {
	mediaType string
	// length is that of the first frame of p, 0 if p does not have all of it.
	length func(p []byte) int
	// decode reads the event of a frame and the metadata of its object.
	decode func(frame []byte, event *metav1.WatchEvent) (metav1.Object, error)
}

// watchEncodingOf knows JSON and protobuf, nil for anything else.
func watchEncodingOf(contentType string) *watchEncoding {
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return nil
	case mediaType == runtime.ContentTypeJSON:
		return &watchEncoding{mediaType, jsonLength, decodeJSON}
	case mediaType == runtime.ContentTypeProtobuf:
		return &watchEncoding{mediaType, protobufLength, decodeProtobuf}
	}
	return nil
}

// protobufMagic begins every object that is encoded as protobuf.
var protobufMagic = []byte("k8s\x00")

// event describes the event of a frame.
func (e *watchEncoding) event(frame []byte) (fault.Operation, bool) {
	var event metav1.WatchEvent
	object, err := e.decode(frame, &event)
	kinds := []string{string(watch.Added), string(watch.Modified), string(watch.Deleted), string(watch.Bookmark), string(watch.Error)}
	if err != nil || !slices.Contains(kinds, event.Type) {
		return fault.Operation{}, false
	}
	op := fault.Operation{Verb: strings.ToLower(event.Type)}
	if object != nil {
		op.Namespace, op.Name = object.GetNamespace(), object.GetName()
	}
	return op, true
}

// jsonLength is that of a line: upstream's JSON has no line breaks in it.
func jsonLength(p []byte) int { return bytes.IndexByte(p, '\n') + 1 }

func decodeJSON(frame []byte, event *metav1.WatchEvent) (metav1.Object, error) {
	if err := json.Unmarshal(frame, event); err != nil {
		return nil, err
	}
	var object struct {
		metav1.PartialObjectMetadata
		Rows []metav1.TableRow `json:"rows"`
	}
	if err := json.Unmarshal(event.Object.Raw, &object); err != nil {
		return nil, err
	}
	if object.Kind != "Table" || len(object.Rows) == 0 {
		return &object.PartialObjectMetadata, nil
	}
	row := &metav1.PartialObjectMetadata{}
	return row, json.Unmarshal(object.Rows[0].Object.Raw, row)
}

// protobufLength is that of a message and its length, four bytes, before it.
func protobufLength(p []byte) int {
	const prefix = 4
	if len(p) < prefix {
		return 0
	}
	if n := uint64(binary.BigEndian.Uint32(p)) + prefix; n <= uint64(len(p)) {
		return int(n)
	}
	return 0
}

func decodeProtobuf(frame []byte, event *metav1.WatchEvent) (metav1.Object, error) {
	if err := event.Unmarshal(frame[4:]); err != nil {
		return nil, err
	}
	raw, ok := bytes.CutPrefix(event.Object.Raw, protobufMagic)
	if !ok {
		return nil, nil
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(raw); err != nil {
		return nil, err
	}
	object := &metav1.PartialObjectMetadata{} // the metadata is the first field of every object
	if event.Type == string(watch.Error) {
		return object, nil // but of a Status it is that of a list
	}
	return object, object.Unmarshal(unknown.Raw)
}

// gzipMembers collects the members of a compressed watch. Upstream ends one with
// each flush, so that it has whole frames in it.
type gzipMembers struct {
	on      bool
	member  []byte
	passing bool // the beginning of the member was not kept
}

// keeps takes a part of a member, if it was wanted from the beginning.
func (g *gzipMembers) keeps(p []byte, wanted bool) bool {
	if g.passing || len(g.member) == 0 && !wanted {
		g.passing = true
		return false
	}
	g.member = append(g.member, p...)
	return true
}

// end returns what is in the member, nothing if it was not kept.
func (g *gzipMembers) end() ([]byte, error) {
	member := g.member
	g.member, g.passing = nil, false
	if member == nil {
		return nil, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(member))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// compressed is a member of its own. As upstream's it is flushed before it ends,
// because a reader that has found the end of a member waits for the next one
// before it hands on what it has.
func compressed(p []byte) []byte {
	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	_, _ = w.Write(p) // to memory, which takes everything
	_ = w.Flush()
	_ = w.Close()
	return member.Bytes()
}
