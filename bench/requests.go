package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/envtest"
)

// What the requests of a round are for: a list as long as a page of most clients.
const (
	listObjects = 500
	listBytes   = 512 // of data in each
	repeats     = 15
)

// yardstick does what has nothing to do with a control plane: hashing, encoding and allocating.
func (r *allRound) yardstick(context.Context) error {
	return r.timed(measureYardstick, repeats, func() error {
		text := bytes.Repeat([]byte("snowglobe "), 100_000)
		sum := sha256.Sum256(text)
		copy(text, sum[:])
		var back []string
		encoded, err := json.Marshal(strings.Fields(string(text[len(sum):])))
		return errors.Join(err, json.Unmarshal(encoded, &back))
	})
}

// requests measures requests to one control plane in this process, and its reset.
func (r *allRound) requests(ctx context.Context) (err error) {
	cp, err := envtest.Launch(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Stop(context.WithoutCancel(ctx))) }()
	client, err := connectAll(cp.Config(), jsonType)
	if err != nil {
		return err
	}
	defer client.close()
	written := 0
	write := func() error {
		written++
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("object-%d", written)}, Data: map[string]string{"payload": strings.Repeat("x", listBytes)}}
		_, err := client.CoreV1().ConfigMaps(corev1.NamespaceDefault).Create(ctx, object, metav1.CreateOptions{})
		return err
	}
	if err := r.timed(measureWrite, listObjects, write); err != nil {
		return err
	}
	path := kinds["configmaps"].path(corev1.NamespaceDefault)
	list := func() error {
		_, err := client.rest.Get().AbsPath(path).DoRaw(ctx)
		return err
	}
	if err := r.timed(measureList, repeats, list); err != nil {
		return err
	}
	if err := r.timed(measureWatchList, repeats, func() error { return watchList(ctx, client.connection, path) }); err != nil {
		return err
	}
	return r.timed(measureReset, 1, func() error { return cp.Reset(ctx) })
}

// watchList gets a list by a watch that begins with everything, until the bookmark that ends it.
func watchList(ctx context.Context, client connection, path string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := client.rest.Get().AbsPath(path).Param("watch", "true").Param("sendInitialEvents", "true").
		Param("resourceVersionMatch", "NotOlderThan").Param("allowWatchBookmarks", "true").Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	for lines := bufio.NewReader(body); ; {
		line, err := lines.ReadBytes('\n')
		if bytes.Contains(line, []byte(metav1.InitialEventsAnnotationKey)) {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return errors.New("the watch ended before it had told everything")
		}
		if err != nil {
			return err
		}
	}
}
