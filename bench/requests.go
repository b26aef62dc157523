package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"snowglobe.test/bench/results"
	"snowglobe.test/envtest"
)

// What the requests of a round are for: a list as long as a page of most clients.
const (
	listObjects  = 500
	listBytes    = 512 // of data in each
	lists        = 60
	resets       = 10
	resetObjects = 50 // written before each reset
)

// calibrate hashes on each processor, which has nothing to do with a control plane, leaves no
// garbage, and so tells how fast the machine is.
func (r *allRound) calibrate() error {
	text := make([]byte, 8<<20)
	return r.timed(results.MeasureCalibration, 10, func() error {
		var all sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			all.Go(func() { sha256.Sum256(text) })
		}
		all.Wait()
		return nil
	})
}

// requests measures requests to one control plane in this process, and its reset.
func (r *allRound) requests(ctx context.Context) (err error) {
	cp, err := envtest.Launch(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Stop(context.WithoutCancel(ctx))) }()
	config := cp.Config()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects := func() *rest.Request {
		return client.CoreV1().RESTClient().Get().Namespace(corev1.NamespaceDefault).Resource("configmaps")
	}
	written := 0
	write := func() error {
		written++
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("object-%d", written)},
			Data: map[string]string{"payload": strings.Repeat("x", listBytes)}}
		_, err := client.CoreV1().ConfigMaps(corev1.NamespaceDefault).Create(ctx, object, metav1.CreateOptions{})
		return err
	}
	if err := r.timed(results.MeasureWrite, listObjects, write); err != nil {
		return err
	}
	list := func() error {
		_, err := objects().DoRaw(ctx)
		return err
	}
	if err := r.timed(results.MeasureList, lists, list); err != nil {
		return err
	}
	if err := r.timed(results.MeasureWatchList, lists, func() error { return watchList(ctx, objects()) }); err != nil {
		return err
	}
	for range resets {
		if err := r.timed(results.MeasureWrite, resetObjects, write); err != nil {
			return err
		}
		if err := r.timed(results.MeasureReset, 1, func() error { return cp.Reset(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// watchList gets a list by a watch that begins with everything, until the bookmark that ends it.
func watchList(ctx context.Context, objects *rest.Request) (err error) {
	opts := metav1.ListOptions{
		Watch: true, AllowWatchBookmarks: true,
		SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
	body, err := objects.VersionedParams(&opts, scheme.ParameterCodec).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	events := bufio.NewScanner(body)
	for events.Scan() {
		if bytes.Contains(events.Bytes(), []byte(metav1.InitialEventsAnnotationKey)) {
			return nil
		}
	}
	return errors.Join(errors.New("the watch ended before all objects had come"), events.Err())
}
