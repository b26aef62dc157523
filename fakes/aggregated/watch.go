package aggregated

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// watcher is a watch that is going on.
type watcher struct {
	server  *Server
	request Request
	options listOptions
	form
	w http.ResponseWriter

	revision int64 // up to which everything has been sent
	initial  bool  // the state at the beginning is wanted, and a bookmark after it
	breaking <-chan struct{}
}

// watch serves a watch until the client leaves, its time is over or the server stops.
func (s *Server) watch(ctx context.Context, w http.ResponseWriter, form form, request Request) error {
	options, err := s.listOptions(request)
	if err != nil {
		return err
	}
	wt := &watcher{
		server: s, request: request, options: options, form: form, w: w,
		revision: options.revision,
		initial:  ptr.Deref(options.SendInitialEvents, false),
		breaking: s.breaking.Next(),
	}
	// The status has not been sent yet, so a watch from a compacted revision can still be refused.
	var begin []*unstructured.Unstructured
	if wt.initial || wt.revision == 0 {
		if now := s.store.now(); wt.revision > now {
			return tooLarge(wt.revision, now)
		}
		begin, wt.revision, err = s.store.list(form.resource.groupResource(), request.Namespace, 0)
	} else {
		_, _, _, err = s.store.since(wt.revision)
	}
	if err != nil {
		return err
	}
	if seconds := ptr.Deref(options.TimeoutSeconds, 0); seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).Flush() // the client may be gone
	wt.run(ctx, begin)
	return nil
}

// run sends what there is at the beginning, and then all changes.
func (wt *watcher) run(ctx context.Context, begin []*unstructured.Unstructured) {
	for _, object := range begin {
		if wt.options.selects(object) && !wt.send(watch.Added, object) {
			return
		}
	}
	if wt.initial && !wt.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"}) {
		return
	}
	ticker := time.NewTicker(wt.server.config.BookmarkInterval)
	defer ticker.Stop()
	for {
		changes, now, changed, err := wt.server.store.since(wt.revision)
		if err != nil {
			wt.fail(err)
			return
		}
		for _, c := range changes {
			if !wt.sendChange(c) {
				return
			}
		}
		wt.revision = now
		select {
		case <-changed:
		case <-ticker.C:
			if wt.options.AllowWatchBookmarks && !wt.bookmark(nil) {
				return
			}
		case <-wt.breaking:
			panic(http.ErrAbortHandler)
		case <-ctx.Done():
			return
		}
	}
}

// sendChange sends a change as the watch sees it: an object that begins to match the
// selectors is ADDED, and one that ceases to match is DELETED.
func (wt *watcher) sendChange(c change) bool {
	if c.key.resource != wt.resource.groupResource() || wt.request.Namespace != "" && c.key.namespace != wt.request.Namespace {
		return true
	}
	was, is := wt.options.selects(c.before), wt.options.selects(c.after)
	switch {
	case was && is:
		return wt.send(watch.Modified, c.after)
	case is:
		return wt.send(watch.Added, c.after)
	case was:
		last := c.before.DeepCopy()
		last.SetResourceVersion(strconv.FormatInt(c.revision, 10))
		return wt.send(watch.Deleted, last)
	default:
		return true
	}
}

func (wt *watcher) send(kind watch.EventType, object *unstructured.Unstructured) bool {
	return wt.write(kind, wt.object(object))
}

// bookmark sends a bookmark: all changes up to its resourceVersion have been sent.
func (wt *watcher) bookmark(annotations map[string]string) bool {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(wt.resource.groupVersion().WithKind(wt.resource.Kind))
	object.SetResourceVersion(strconv.FormatInt(wt.revision, 10))
	object.SetAnnotations(annotations)
	return wt.write(watch.Bookmark, wt.object(object))
}

func (wt *watcher) fail(err error) {
	wt.write(watch.Error, statusOf(err))
}

// write sends an event, and reports whether the client is still there.
func (wt *watcher) write(kind watch.EventType, object any) bool {
	err := json.NewEncoder(wt.w).Encode(struct {
		Type   watch.EventType `json:"type"`
		Object any             `json:"object"`
	}{kind, object})
	return err == nil && http.NewResponseController(wt.w).Flush() == nil
}
