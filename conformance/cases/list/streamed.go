package list

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"snowglobe.test/conformance/suite"
)

var streamedCases = []suite.Case{
	{ID: "S6/streamed-lists-are-the-same-bytes", Since: "1.34", Test: streamedListsAreTheSameBytes,
		Source: "KEP-5116; k8s.io/apimachinery/pkg/runtime/serializer/json/collections.go; " +
			"k8s.io/apimachinery/pkg/runtime/serializer/protobuf/collections.go",
		Promise: "A list, which is encoded item by item, has the very bytes that encoding it as a whole makes, in " +
			"JSON and in protobuf, of built-in and of custom resources, pages and an empty list too."},
	{ID: "S6/streaming-list-is-compressed", Since: "1.37", Gates: []string{"WatchListCompression"},
		Test:   streamingListIsCompressed,
		Source: "KEP-3157; k8s.io/apiserver/pkg/endpoints/handlers/watch.go, BeginStream and perFlushGzipWriter",
		Promise: "A streaming list is compressed for who accepts gzip, its events can be read as they come, and " +
			"caches are told; other watches, and those of who does not accept it, are not compressed."},
	{ID: "S12/CBOR-is-behind-its-gate", Failure: true, Test: cborIsBehindItsGate,
		Source: "KEP-4222; k8s.io/apiserver/pkg/features/kube_features.go, CBORServingAndStorage; " +
			"k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go",
		Promise: "While CBORServingAndStorage is off, who accepts CBOR alone is answered 406, who accepts JSON too " +
			"gets JSON, and a body or a patch in CBOR is 415 and writes nothing."},
}

func streamedListsAreTheSameBytes(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	for i := range 5 {
		cms.MustCreate(ctx, cms.Object(fmt.Sprint("n", i), "snow <&> \u2028 \"quoted\""))
	}
	mine := "labelSelector=" + cms.Mine().LabelSelector
	for _, query := range []string{mine, mine + "&limit=2", mine + ",none=at-all"} {
		got := t.Answered(ctx, cms.Path()+"?"+query, http.StatusOK)
		t.Expect(string(got.Body)).To(gomega.Equal(reencoded[corev1.ConfigMapList](t, got)), "JSON with %s", query)
		binary := t.Ask(ctx, suite.Request{Path: cms.Path() + "?" + query, Accept: runtime.ContentTypeProtobuf})
		t.Expect(bytes.Equal(binary.Body, reencodedProtobuf(t, binary))).
			To(gomega.BeTrue(), "protobuf with %s: %q", query, binary.Body)
	}
	w := t.Install(ctx, t.WidgetCRD())
	for _, name := range []string{"one", "two"} {
		w.Make(ctx, name, suite.At("<&>", "spec", "color"), suite.At(int64(1), "spec", "size"))
	}
	for _, query := range []string{"", "?limit=1", "?labelSelector=none%3Dat-all"} {
		got := t.Answered(ctx, w.Path+query, http.StatusOK)
		t.Expect(string(got.Body)).To(gomega.Equal(reencoded[map[string]any](t, got)), "custom resources with %q",
			query)
	}
}

// reencoded decodes an answer, and encodes it as a whole.
func reencoded[V any](t *suite.T, got suite.Answer) string {
	var whole bytes.Buffer
	t.Must(json.NewEncoder(&whole).Encode(suite.JSON[V](t, got)), "encode: %s", got)
	return whole.String()
}

// reencodedProtobuf is reencoded for a list of ConfigMaps in protobuf.
func reencodedProtobuf(t *suite.T, got suite.Answer) []byte {
	const magic = "k8s\x00"
	content, found := bytes.CutPrefix(got.Body, []byte(magic))
	t.Expect(found).To(gomega.BeTrue(), "not in protobuf: %s", got)
	var envelope runtime.Unknown
	t.Must(envelope.Unmarshal(content), "decode the envelope: %s", got)
	var list corev1.ConfigMapList
	t.Must(list.Unmarshal(envelope.Raw), "decode the list: %s", got)
	raw, err := list.Marshal()
	t.Must(err, "encode the list")
	whole, err := (&runtime.Unknown{TypeMeta: envelope.TypeMeta, Raw: raw}).Marshal()
	t.Must(err, "encode the envelope")
	return append([]byte(magic), whole...)
}

func streamingListIsCompressed(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a", "b")
	watched := cms.Path() + "?watch=1&timeoutSeconds=2&labelSelector=" + cms.Mine().LabelSelector
	streamed := watched + "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	ask := func(path, encoding string) suite.Answer {
		return t.AnsweredTo(ctx, suite.Request{Path: path, Header: map[string]string{"Accept-Encoding": encoding}},
			http.StatusOK)
	}
	zipped := ask(streamed, "gzip")
	t.Expect(zipped.Header.Get("Content-Encoding")).To(gomega.Equal("gzip"))
	t.Expect(zipped.Header.Values("Vary")).To(gomega.ContainElement("Accept-Encoding"))
	var seen []string
	for line := range bytes.Lines(unzip(t, zipped.Body)) {
		var event struct {
			Type   string
			Object struct{ Metadata metav1.ObjectMeta }
		}
		t.Must(json.Unmarshal(line, &event), "decode %s", line)
		if event.Type == "BOOKMARK" {
			t.Expect(event.Object.Metadata.Annotations).
				To(gomega.HaveKeyWithValue(metav1.InitialEventsAnnotationKey, "true"))
			break
		}
		seen = append(seen, event.Type+" "+event.Object.Metadata.Name)
	}
	t.Expect(seen).To(gomega.ConsistOf("ADDED a", "ADDED b"))
	for path, encoding := range map[string]string{streamed: "identity", watched: "gzip"} {
		plain := ask(path, encoding)
		t.Expect(plain.Header.Get("Content-Encoding")).To(gomega.BeEmpty(), "%s", plain)
		t.Expect(string(plain.Body)).To(gomega.ContainSubstring(`"type":"ADDED"`), "%s", plain)
	}
}

func cborIsBehindItsGate(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	before := cms.Make(ctx, "a")
	const cbor, sequence = "application/cbor", "application/cbor-seq"
	for path, accept := range map[string]string{cms.Path(): cbor, cms.Path() + "/a": cbor,
		cms.Path() + "?watch=1&timeoutSeconds=1": sequence} {
		t.ExpectStatus(t.Ask(ctx, suite.Request{Path: path, Accept: accept}), suite.NotAcceptable)
	}
	both := t.AnsweredTo(ctx, suite.Request{Path: cms.Path() + "/a", Accept: cbor + "," + runtime.ContentTypeJSON},
		http.StatusOK)
	t.Expect(both.Header.Get("Content-Type")).To(gomega.Equal(runtime.ContentTypeJSON), "%s", both)
	for method, media := range map[string]string{http.MethodPost: cbor, http.MethodPut: cbor,
		http.MethodPatch: "application/apply-patch+cbor"} {
		path := cms.Path() + "/a?fieldManager=conformance"
		if method == http.MethodPost {
			path = cms.Path()
		}
		got := t.Ask(ctx, suite.Request{Method: method, Path: path, Body: []byte("\xd9\xd9\xf7\xa0"),
			Header: map[string]string{"Content-Type": media}})
		t.ExpectStatus(got, suite.UnsupportedMedia)
	}
	t.Expect(cms.Read(ctx, "a")).To(gomega.Equal(before), "after what was refused")
}
