package envtest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/trace"
)

// TestFullTrace tells what a client is told, the same in either encoding, and
// what the store sees.
func TestFullTrace(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		want := []string{
			"answer DELETE 200", "answer GET 200 ConfigMap default/snow true", "answer GET 404 NotFound",
			"answer POST 201 ConfigMap default/snow true", "watch ", "watch ADDED ConfigMap default/snow true",
			"watch DELETED ConfigMap default/snow true", "write create", "write delete",
		}
		for _, encoding := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
			config := cp.Config(envtest.User("viewer", "system:masters"))
			config.ContentType, config.AcceptContentTypes = encoding, encoding
			before := len(cp.Trace().Records())
			watchOne(t, kubernetes.NewForConfigOrDie(config))
			assert.Empty(t, cmp.Diff(want, shapes(cp.Trace().Records()[before:])), "what was told in %s (-want +got)", encoding)
		}
	}, envtest.WithFullTrace())
}

// watchOne makes an object, watches it, lists, asks for what is not there, and
// deletes it.
func watchOne(t *testing.T, client kubernetes.Interface) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	maps := client.CoreV1().ConfigMaps("default")
	_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "snow"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	watch, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=snow"})
	require.NoError(t, err)
	<-watch.ResultChan()
	_, err = maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=snow"})
	require.NoError(t, err)
	_, err = maps.Get(ctx, "nothing", metav1.GetOptions{})
	require.Error(t, err, "there is nothing of that name")
	require.NoError(t, maps.Delete(ctx, "snow", metav1.DeleteOptions{}))
	<-watch.ResultChan()
	watch.Stop()
	for range watch.ResultChan() {
	}
}

// shapes are the events of a full trace, sorted: what the store and a client
// see at one moment has no order.
func shapes(recs []trace.Record) []string {
	var shapes []string
	for _, rec := range recs {
		if w, ok := rec.Event.(trace.Write); ok && w.Key != "/registry/configmaps/default/snow" {
			continue
		}
		if text := shape(rec.Event); text != "" {
			shapes = append(shapes, text)
		}
	}
	slices.Sort(shapes)
	return shapes
}

// shape is an event without what differs from run to run.
func shape(e trace.Event) string {
	object := func(o trace.Object) string {
		return o.Kind + " " + o.Namespace + "/" + o.Name + " " + map[bool]string{true: "true", false: "false"}[o.Revision > 0 && o.Digest != ""]
	}
	switch e := e.(type) {
	case trace.Answer:
		text := "answer " + e.Method + " " + map[int]string{200: "200", 201: "201", 404: "404"}[e.Code]
		if e.Reason != "" {
			text += " " + e.Reason
		}
		for _, o := range e.Objects {
			text += " " + object(o)
		}
		return text
	case trace.WatchEvent:
		if e.Type == "" {
			return "watch "
		}
		return "watch " + e.Type + " " + object(e.Object)
	case trace.Write:
		switch {
		case e.Created:
			return "write create"
		case e.Deleted:
			return "write delete"
		}
		return "write update"
	}
	return ""
}
