package load

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// How a watcher gets the objects that are there when it begins.
const (
	InitialNone   = "none"
	InitialList   = "list"   // by a list from the watch cache, before the watch
	InitialStream = "stream" // at the beginning of the watch, a streaming list
)

// makeObjects makes the objects that are only listed: the load writes to others.
func (s *apiServer) makeObjects(ctx context.Context) error {
	making, ctx := errgroup.WithContext(ctx)
	making.SetLimit(parallelOpens)
	for number := range s.Options.Objects {
		making.Go(func() error {
			return s.makeObject(ctx, s.admin.rest, fmt.Sprintf("object-%d", number), number%s.Groups)
		})
	}
	return making.Wait()
}

// makeObject makes an object of a group.
func (s *apiServer) makeObject(ctx context.Context, client rest.Interface, name string, group int) error {
	object, err := json.Marshal(s.kind.object(name, map[string]string{GroupLabel: s.Selector(group)}, s.Payload()))
	if err != nil {
		return err
	}
	return client.Post().AbsPath(s.kind.path(s.namespaceOf(group))).SetHeader("Content-Type", jsonType).Body(object).
		Do(ctx).Error()
}

// initial is how a watch that is opened now gets the objects that are there: one that goes on from
// an event knows them.
func (l *Load) initial() string {
	if !l.begun.IsZero() {
		return InitialNone
	}
	return l.Options.Initial
}

// list reads all objects that a watcher will watch, as an informer does, and keeps none.
func (s *apiServer) list(ctx context.Context, client connection, asked *rest.Request) error {
	if s.Options.Decode {
		if s.kind.Custom() {
			return asked.Do(ctx).Into(&unstructured.UnstructuredList{})
		}
		return asked.Do(ctx).Into(s.kind.EmptyList())
	}
	body, err := s.ask(ctx, client, asked.URL().String(), encodings[s.Options.Encoding].accepted)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}

// streaming are the options of a watch that begins with the objects that are there.
func streaming(opts metav1.ListOptions) metav1.ListOptions {
	opts.SendInitialEvents, opts.ResourceVersionMatch = new(true), metav1.ResourceVersionMatchNotOlderThan
	return opts
}

// errInitial says that a streaming list has ended before its end.
var errInitial = errors.New("the watch ended before all initial objects had come")

// initialEnd is in the bookmark that says that all objects have come, in every encoding.
var initialEnd = []byte(metav1.InitialEventsAnnotationKey)

// skipInitial reads the objects that are there.
func (s *raw) skipInitial(ctx context.Context) error {
	done, err := s.frames(ctx, func(frame []byte, _ time.Duration) (bool, error) {
		return bytes.Contains(frame, initialEnd), nil
	})
	if err == nil && !done {
		err = errors.Join(errInitial, s.unstamped())
	}
	return err
}

func (s *decoded) skipInitial(ctx context.Context) error {
	for {
		object, err := s.next(ctx)
		switch {
		case err != nil:
			return err
		case object == nil:
			return errInitial
		case object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "":
			return nil
		}
	}
}

// gunzipped reads what a server compresses, and waits for nothing before it is read.
type gunzipped struct {
	io.ReadCloser
	plain *gzip.Reader
}

// Read implements io.Reader.
func (g *gunzipped) Read(p []byte) (n int, err error) {
	if g.plain == nil {
		if g.plain, err = gzip.NewReader(g.ReadCloser); err != nil {
			return 0, err
		}
	}
	return g.plain.Read(p)
}
