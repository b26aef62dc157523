package startup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/bench/child"
	"snowglobe.test/bench/measure"
	"snowglobe.test/envtest"
)

// Run measures boots in a process of their own.
func Run(ctx context.Context, request Request) (Answer, error) {
	request.Executed = time.Now()
	var answer Answer
	err := child.Converse(ctx, Kind, request, io.Discard, func(line []byte, _ io.Writer) error {
		return json.Unmarshal(line, &answer)
	})
	if err == nil && len(answer.Starts) != request.Boots {
		err = fmt.Errorf("a process measured %d of %d boots", len(answer.Starts), request.Boots)
	}
	return answer, err
}

// Kind is what a process measures for Run, with Child.
const Kind = "startup"

// Request is what a process measures: ours on a store, or envtest on binaries.
type Request struct {
	Store    string    `json:"store,omitempty"`
	Binaries string    `json:"binaries,omitempty"`
	Boots    int       `json:"boots"`
	Profile  string    `json:"profile,omitempty"`
	Executed time.Time `json:"executed"`
}

// Answer is the line the process prints.
type Answer struct {
	Load   time.Duration   `json:"loadNS"`
	Starts []time.Duration `json:"startsNS"`
	Stops  []time.Duration `json:"stopsNS"`
}

// Child measures boots, and writes how long they took.
func Child(ctx context.Context, out io.Writer, begun time.Time, request Request) error {
	answer := Answer{Load: begun.Sub(request.Executed)}
	for number := range request.Boots {
		start, stop, err := request.Boot(ctx, number+1)
		if err != nil {
			return fmt.Errorf("boot %d: %w", number+1, err)
		}
		answer.Starts, answer.Stops = append(answer.Starts, start), append(answer.Stops, stop)
	}
	return json.NewEncoder(out).Encode(answer)
}

// Boot starts and stops one control plane, the number-th of this process, counted from 1.
func (r Request) Boot(ctx context.Context, number int) (start, stop time.Duration, err error) {
	if r.Binaries != "" {
		return bootEnvtest(ctx, r.Binaries)
	}
	endProfile := func() error { return nil }
	if r.Profile != "" {
		if endProfile, err = measure.ProfileCPU(filepath.Join(r.Profile,
			fmt.Sprintf("boot-%d.pprof", number))); err != nil {
			return 0, 0, err
		}
	}
	begun := time.Now()
	cp, err := envtest.Launch(ctx, OnStore(r.Store)...)
	if err != nil {
		return 0, 0, errors.Join(err, endProfile())
	}
	err = awaitDefaultNamespace(ctx, cp.Config())
	start = time.Since(begun)
	err = errors.Join(err, endProfile())
	begun = time.Now()
	err = errors.Join(err, cp.Stop(context.WithoutCancel(ctx)))
	return start, time.Since(begun), err
}

// awaitDefaultNamespace waits as envtest's Start does, but by watching.
func awaitDefaultNamespace(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	stream, err := client.CoreV1().Namespaces().Watch(ctx,
		metav1.SingleObject(metav1.ObjectMeta{Name: corev1.NamespaceDefault}))
	if err != nil {
		return fmt.Errorf("wait for the default namespace: %w", err)
	}
	defer stream.Stop()
	if event := <-stream.ResultChan(); event.Type != watch.Added {
		return fmt.Errorf("wait for the default namespace: the watch ended with %q: %w", event.Type, context.Cause(ctx))
	}
	return nil
}
