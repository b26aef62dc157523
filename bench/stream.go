package bench

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

	"snowglobe.test/internal/watchframe"
)

// stream is one request for a watch of the objects of a load.
type stream interface {
	// receive calls each with every stamped event, and when it arrived, until each returns true
	// or the server ends the watch.
	receive(ctx context.Context, each func(at stamp, arrived time.Duration) (done bool, err error)) (done bool, err error)
	// newest is the resourceVersion of the last event, to continue from; empty if there was none.
	newest() (string, error)
	stop()
}

// watch implements backend.
func (s *apiServer) watch(ctx context.Context, watcher, group int, from string) (stream, error) {
	opts := metav1.ListOptions{Watch: true, ResourceVersion: from, AllowWatchBookmarks: true}
	if s.opts.Selectors > 1 {
		opts.LabelSelector = groupLabel + "=" + s.selectorOf(group)
	}
	client := s.shared[watcher/s.opts.StreamsPerConnection]
	if watcher == 0 && s.first != nil {
		client = *s.first
	}
	asked := client.rest.Get().AbsPath(s.kind.path(s.namespaceOf(group))).VersionedParams(&opts, scheme.ParameterCodec)
	if !s.opts.Decode {
		return s.openBytes(ctx, client, asked.URL().String())
	}
	var events watch.Interface
	var err error
	if s.kind.Group == customGroup {
		var custom dynamic.Interface
		if custom, err = dynamic.NewForConfigAndClient(client.config, client.http); err == nil {
			events, err = custom.Resource(s.kind.gvr()).Namespace(s.namespaceOf(group)).Watch(ctx, opts)
		}
	} else {
		events, err = asked.Watch(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &decoded{load: s.load, events: events}, nil
}

// openBytes asks for a watch by hand, to read what comes as it is.
func (l *load) openBytes(ctx context.Context, client connection, address string) (stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	request.Header.Set("Accept", encodings[l.opts.Encoding].accepted)
	response, err := client.http.Do(request)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &raw{load: l, body: response.Body, cancel: cancel}
	if s.mediaType, _, _ = mime.ParseMediaType(response.Header.Get("Content-Type")); response.StatusCode == http.StatusOK && s.mediaType == encodings[l.opts.Encoding].stream {
		s.framer = newFramer(s.mediaType)
		return s, nil
	}
	defer s.stop()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	if err != nil {
		return nil, err
	}
	return nil, refusal(response, text)
}

// maxRefusal bounds how much of an answer is read that is no watch.
const maxRefusal = 64 << 10

// raw is a watch that is read as bytes: it costs the client little more than reading.
type raw struct {
	load      *load
	body      io.ReadCloser
	cancel    context.CancelFunc
	mediaType string
	framer    framer
	last      []byte // a copy of the newest frame
}

// readBytes is how much a watcher reads at a time, at first: one event of the smallest loads.
const readBytes = 2 << 10

func (s *raw) receive(ctx context.Context, each func(stamp, time.Duration) (bool, error)) (done bool, err error) {
	defer context.AfterFunc(ctx, s.cancel)()
	buffer, held := make([]byte, readBytes), 0
	for {
		if held == len(buffer) {
			buffer = append(buffer, make([]byte, len(buffer))...)
		}
		n, err := s.body.Read(buffer[held:])
		arrived := time.Since(s.load.begun)
		cut, cutErr := s.framer.cut(buffer[:held+n], func(frame []byte) error {
			if done {
				return nil
			}
			s.last = append(s.last[:0], frame...)
			at, ok, err := findStamp(frame)
			switch {
			case err != nil:
				return err
			case ok:
				done, err = each(at, arrived)
				return err
			}
			return s.unstamped()
		})
		held = copy(buffer, buffer[cut:held+n])
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

// unstamped looks at an event that is not of the load: a bookmark, another writer's, or an error.
func (s *raw) unstamped() error {
	event, err := s.event()
	if err != nil || event.Type != string(watch.Error) {
		return err
	}
	object, err := decode(s.mediaType, event.Object.Raw)
	if err != nil {
		return fmt.Errorf("an event of type %s: %w", event.Type, err)
	}
	return apierrors.FromObject(object)
}

// event decodes the newest frame.
func (s *raw) event() (event *metav1.WatchEvent, err error) {
	found := false
	err = watchframe.NewSplitter(s.mediaType).Add(s.last, func(frame watchframe.Frame) (err error) {
		event, err = frame.Event()
		found = true
		return err
	})
	if err == nil && !found {
		err = errors.New("the newest event of the watch is not whole")
	}
	return event, err
}

func (s *raw) newest() (string, error) {
	if s.last == nil {
		return "", nil
	}
	event, err := s.event()
	if err != nil {
		return "", err
	}
	object, err := decode(s.mediaType, event.Object.Raw)
	if err != nil {
		return "", err
	}
	newest, err := meta.Accessor(object)
	if err != nil {
		return "", err
	}
	return newest.GetResourceVersion(), nil
}

func (s *raw) stop() {
	s.cancel()
	_ = s.body.Close() // nobody is left to tell
}

// decoded is a watch as client-go gives it: each event is decoded.
type decoded struct {
	load   *load
	events watch.Interface
	last   string
}

func (s *decoded) receive(ctx context.Context, each func(stamp, time.Duration) (bool, error)) (done bool, err error) {
	for {
		select {
		case event, ok := <-s.events.ResultChan():
			if !ok {
				return false, nil
			}
			arrived := time.Since(s.load.begun)
			if event.Type == watch.Error {
				return false, apierrors.FromObject(event.Object)
			}
			object, err := meta.Accessor(event.Object)
			if err != nil {
				return false, fmt.Errorf("an event of type %s: %w", event.Type, err)
			}
			s.last = object.GetResourceVersion()
			if done, err := tell([]byte(object.GetAnnotations()[stampAnnotation]), arrived, each); done || err != nil {
				return done, err
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// tell calls each with the stamp in a text, if there is one.
func tell(text []byte, arrived time.Duration, each func(stamp, time.Duration) (bool, error)) (done bool, err error) {
	at, ok, err := findStamp(text)
	if err != nil || !ok {
		return false, err
	}
	return each(at, arrived)
}

func (s *decoded) newest() (string, error) { return s.last, nil }

func (s *decoded) stop() { s.events.Stop() }
