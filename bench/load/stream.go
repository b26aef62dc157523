package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"snowglobe.test/bench/wire"
	"snowglobe.test/internal/watchframe"
)

// Stream is one request for a watch of the objects of a load.
type Stream interface {
	// Receive calls each with every stamped event, and when it arrived, until each returns true
	// or the server ends the watch.
	Receive(ctx context.Context, each func(at wire.Stamp, arrived time.Duration) (done bool, err error)) (done bool,
		err error)
	// Newest is the resourceVersion of the last event, to continue from; empty if there was none.
	Newest() (string, error)
	Stop()
}

// initialStream is a stream that can begin with a streaming list.
type initialStream interface {
	Stream
	// skipInitial reads the objects that are there.
	skipInitial(ctx context.Context) error
}

// Watch implements Backend.
func (s *apiServer) Watch(ctx context.Context, watcher, group int, from string) (Stream, error) {
	opts := metav1.ListOptions{Watch: true, ResourceVersion: from, AllowWatchBookmarks: true}
	if s.Options.Selectors > 1 {
		opts.LabelSelector = GroupLabel + "=" + s.Selector(group)
	}
	client := s.shared[watcher/s.Options.StreamsPerConnection]
	if watcher == 0 && s.first != nil {
		client = *s.first
	}
	asked := func(opts metav1.ListOptions) *rest.Request {
		return client.rest.Get().AbsPath(s.kind.path(s.namespaceOf(group))).
			VersionedParams(&opts, scheme.ParameterCodec)
	}
	initial := s.initial()
	switch initial {
	case InitialList:
		if err := s.list(ctx, client, asked(metav1.ListOptions{ResourceVersion: "0",
			LabelSelector: opts.LabelSelector})); err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
	case InitialStream:
		opts = streaming(opts)
	}
	var opened initialStream
	var err error
	if s.Options.Decode {
		opened, err = s.openDecoded(ctx, client, group, asked(opts), opts)
	} else {
		opened, err = s.openBytes(ctx, client, asked(opts).URL().String())
	}
	if err != nil {
		return nil, err
	}
	if initial == InitialStream {
		if err := opened.skipInitial(ctx); err != nil {
			opened.Stop()
			return nil, err
		}
	}
	return opened, nil
}

// openDecoded asks for a watch as client-go does.
func (s *apiServer) openDecoded(ctx context.Context, client connection, group int, asked *rest.Request,
	opts metav1.ListOptions) (_ *decoded, err error) {
	var events watch.Interface
	if s.kind.Custom() {
		var custom dynamic.Interface
		if custom, err = dynamic.NewForConfigAndClient(client.config, client.http); err == nil {
			events, err = custom.Resource(s.kind.GVR()).Namespace(s.namespaceOf(group)).Watch(ctx, opts)
		}
	} else {
		events, err = asked.Watch(ctx)
	}
	if err != nil {
		return nil, err
	}
	return NewDecoded(s.Load, events), nil
}

// openBytes asks for a watch with a plain HTTP request, to read its bytes without decoding them.
func (l *Load) openBytes(ctx context.Context, client connection, address string) (*raw, error) {
	ctx, cancel := context.WithCancel(ctx)
	mediaType := encodings[l.Options.Encoding].stream
	body, err := l.ask(ctx, client, address, mediaType)
	if err != nil {
		cancel()
		return nil, err
	}
	return &raw{load: l, body: body, cancel: cancel, mediaType: mediaType, framer: wire.NewFramer(mediaType),
		buffer: make([]byte, readBytes)}, nil
}

// ask sends a GET request that accepts the encoding of the load, and returns the body of the answer
// if it is 200 and has the media type.
func (l *Load) ask(ctx context.Context, client connection, address, mediaType string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", encodings[l.Options.Encoding].accepted)
	request.Header.Set("Accept-Encoding", "identity")
	if l.Options.Compress {
		request.Header.Set("Accept-Encoding", "gzip")
	}
	response, err := client.http.Do(request)
	if err != nil {
		return nil, err
	}
	if found, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); response.StatusCode == http.StatusOK &&
		found == mediaType {
		if response.Header.Get("Content-Encoding") == "gzip" {
			return &gunzipped{ReadCloser: response.Body}, nil
		}
		return response.Body, nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	return nil, wire.Refusal(response, text)
}

// maxRefusal bounds how much is read of an answer that is not 200, or has another media type.
const maxRefusal = 64 << 10

// raw is a watch that is read as bytes: it costs the client little more than reading.
type raw struct {
	load      *Load
	body      io.ReadCloser
	cancel    context.CancelFunc
	mediaType string
	framer    wire.Framer
	buffer    []byte
	held      int    // bytes of the buffer that are a part of a frame
	last      []byte // a copy of the newest frame
}

// readBytes is how much a watcher reads at a time, at first: one event of the smallest loads.
const readBytes = 2 << 10

func (s *raw) Receive(ctx context.Context, each func(wire.Stamp, time.Duration) (bool, error)) (done bool, err error) {
	return s.frames(ctx, func(frame []byte, arrived time.Duration) (bool, error) {
		at, ok, err := wire.FindStamp(frame)
		switch {
		case err != nil:
			return false, err
		case ok:
			return each(at, arrived)
		}
		return false, s.unstamped()
	})
}

// frames calls each with every frame that comes, and when it arrived, until each returns true or
// the server ends the watch. Frames that were read together with the last one are dropped.
func (s *raw) frames(ctx context.Context, each func(frame []byte, arrived time.Duration) (bool, error)) (done bool,
	err error) {
	defer context.AfterFunc(ctx, s.cancel)()
	for {
		if s.held == len(s.buffer) {
			s.buffer = append(s.buffer, make([]byte, len(s.buffer))...)
		}
		n, err := s.body.Read(s.buffer[s.held:])
		arrived := s.load.Now()
		cut, cutErr := s.framer.Cut(s.buffer[:s.held+n], func(frame []byte) (err error) {
			if !done {
				s.last = append(s.last[:0], frame...)
				done, err = each(frame, arrived)
			}
			return err
		})
		s.held = copy(s.buffer, s.buffer[cut:s.held+n])
		switch {
		case done || cutErr != nil:
			return done, cutErr
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case err != nil:
			return false, nil // however the server ended it, the watch can go on from there
		}
	}
}

// unstamped looks at an event that is not of the load. It returns the error of an ERROR event, and
// ignores bookmarks and events of other writers.
func (s *raw) unstamped() error {
	event, err := s.event()
	if err != nil || event.Type != string(watch.Error) {
		return err
	}
	object, err := wire.Decode(s.mediaType, event.Object.Raw)
	if err != nil {
		return fmt.Errorf("an event of type %s: %w", event.Type, err)
	}
	return apierrors.FromObject(object)
}

// event decodes the newest frame.
func (s *raw) event() (event *metav1.WatchEvent, err error) {
	err = watchframe.NewSplitter(s.mediaType).Add(s.last, func(frame watchframe.Frame) (err error) {
		event, err = frame.Event()
		return err
	})
	if err == nil && event == nil {
		err = errors.New("the newest event of the watch is not whole")
	}
	return event, err
}

func (s *raw) Newest() (string, error) {
	if s.last == nil {
		return "", nil
	}
	event, err := s.event()
	if err != nil {
		return "", err
	}
	object, err := wire.Decode(s.mediaType, event.Object.Raw)
	if err != nil {
		return "", err
	}
	newest, err := meta.Accessor(object)
	if err != nil {
		return "", err
	}
	return newest.GetResourceVersion(), nil
}

func (s *raw) Stop() {
	s.cancel()
	_ = s.body.Close() // the watch is over, and no caller asks how
}

// NewDecoded is a stream of events that are decoded.
func NewDecoded(l *Load, events watch.Interface) *decoded { return &decoded{load: l, events: events} }

// decoded is a watch as client-go gives it: each event is decoded.
type decoded struct {
	load   *Load
	events watch.Interface
	last   string
}

func (s *decoded) Receive(ctx context.Context, each func(wire.Stamp, time.Duration) (bool, error)) (done bool,
	err error) {
	for {
		object, err := s.next(ctx)
		if object == nil {
			return false, err
		}
		arrived := s.load.Now()
		if done, err := Tell([]byte(object.GetAnnotations()[wire.StampAnnotation]), arrived, each); done || err != nil {
			return done, err
		}
	}
}

// next is the object of the next event, nil if the server has ended the watch.
func (s *decoded) next(ctx context.Context) (metav1.Object, error) {
	select {
	case event, ok := <-s.events.ResultChan():
		if !ok {
			return nil, nil
		}
		if event.Type == watch.Error {
			return nil, apierrors.FromObject(event.Object)
		}
		object, err := meta.Accessor(event.Object)
		if err != nil {
			return nil, fmt.Errorf("an event of type %s: %w", event.Type, err)
		}
		s.last = object.GetResourceVersion()
		return object, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Tell calls each with the stamp in a text, if there is one.
func Tell(text []byte, arrived time.Duration, each func(wire.Stamp, time.Duration) (bool, error)) (done bool,
	err error) {
	at, ok, err := wire.FindStamp(text)
	if err != nil || !ok {
		return false, err
	}
	return each(at, arrived)
}

func (s *decoded) Newest() (string, error) { return s.last, nil }

func (s *decoded) Stop() { s.events.Stop() }
