package envtest_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

const (
	runtimeJSON     = runtime.ContentTypeJSON
	runtimeProtobuf = runtime.ContentTypeProtobuf
)

func init() { pointTests["watch/<resource> added"] = pointTest{show: showWatch} }

// rawWatch reads a watch event by event, and sees the errors of its connection,
// which client-go keeps to itself.
type rawWatch struct {
	h        *httpTest
	body     io.ReadCloser
	reader   *bufio.Reader
	protobuf bool
}

// openWatch watches the configmaps of the namespace default.
func (h *httpTest) openWatch(accept string) *rawWatch {
	h.Helper()
	body, err := h.client.CoreV1().RESTClient().Get().Namespace("default").Resource("configmaps").Param("watch", "true").
		SetHeader("Accept", accept).MaxRetries(0).Stream(h.Context())
	require.NoError(h, err)
	h.Cleanup(func() { _ = body.Close() })
	return &rawWatch{h, body, bufio.NewReader(body), accept == runtimeProtobuf}
}

// next is the next event, such as "ADDED a" or "ERROR Expired". Bookmarks that
// only time brings are left out.
func (w *rawWatch) next() (string, error) {
	var event metav1.WatchEvent
	if err := w.frame(&event); err != nil {
		return "", err
	}
	object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), event.Object.Raw)
	if err != nil {
		return "", err
	}
	if status, ok := object.(*metav1.Status); ok {
		assert.EqualValues(w.h, 410, status.Code)
		return event.Type + " " + string(status.Reason), nil
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return "", err
	}
	if _, initial := accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey]; event.Type == "BOOKMARK" && !initial {
		return w.next()
	}
	return event.Type + " " + accessor.GetName(), nil
}

func (w *rawWatch) frame(event *metav1.WatchEvent) error {
	if !w.protobuf {
		line, err := w.reader.ReadBytes('\n')
		if err != nil {
			return err
		}
		return runtime.DecodeInto(scheme.Codecs.UniversalDeserializer(), bytes.TrimSpace(line), event)
	}
	var length [4]byte
	if _, err := io.ReadFull(w.reader, length[:]); err != nil {
		return err
	}
	message := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(w.reader, message); err != nil {
		return err
	}
	return event.Unmarshal(message)
}

// sees reads events that must come next.
func (w *rawWatch) sees(want ...string) {
	w.h.Helper()
	for _, event := range want {
		got, err := w.next()
		require.NoError(w.h, err)
		require.Equal(w.h, event, got)
	}
}

func showWatch(t testing.TB, cp *envtest.ControlPlane) {
	h := newHTTPTest(t, cp)
	require.NoError(t, h.create("a"))
	for _, encoding := range []string{runtimeJSON, runtimeProtobuf} {
		h.bendWatch(encoding)
	}
}

// bendWatch watches configmap default/a. All rules come while the watch runs.
func (h *httpTest) bendWatch(encoding string) {
	const modified = "watch/configmaps verb=modified name=default/a caller=" + envtest.AdminUser
	watch := h.openWatch(encoding)
	watch.sees("ADDED a")
	changes := 0
	change := func() {
		changes++
		require.NoError(h, h.update(h.Context(), fmt.Sprint(encoding, changes)))
	}
	change()
	watch.sees("MODIFIED a")

	require.NoError(h, h.held(modified, func() error {
		change()
		watch.sees("MODIFIED a")
		return nil
	}, func(op fault.Operation) {
		assert.Equal(h, fault.Operation{
			Point: "watch/configmaps", Phase: fault.Before, Server: "apiserver-0", Verb: "modified",
			Namespace: "default", Name: "a", Key: "/api/v1/namespaces/default/configmaps", Caller: envtest.AdminUser, Occurrence: op.Occurrence,
		}, op)
	}))
	h.bent("drop "+modified+" times=1", func() {
		change()
		change()
		watch.sees("MODIFIED a")
	})
	h.bent("duplicate "+modified, func() {
		change()
		watch.sees("MODIFIED a", "MODIFIED a")
	})
	h.bent("drop watch/configmaps verb=added name=default/b\ndrop watch/configmaps verb=deleted name=default/b", func() {
		require.NoError(h, h.create("b"))
		require.NoError(h, h.client.CoreV1().ConfigMaps("default").Delete(h.Context(), "b", metav1.DeleteOptions{}))
		change()
		watch.sees("MODIFIED a")
	})
	h.bent("fail "+modified+" with=410", func() {
		change()
		watch.sees("ERROR Expired")
		watch.ends(io.EOF)
	})
	for rule, is := range map[string]error{
		"cancel " + modified:               io.EOF,
		"fail " + modified + " with=reset": syscall.ECONNRESET,
		"fail " + modified + " with=eof":   io.ErrUnexpectedEOF,
	} {
		watch := h.openWatch(encoding)
		watch.sees("ADDED a")
		h.bent(rule, func() {
			change()
			watch.ends(is)
		})
	}
}

// ends reads the end of the watch.
func (w *rawWatch) ends(is error) {
	w.h.Helper()
	event, err := w.next()
	require.ErrorIs(w.h, err, is, event)
}
