package fakes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"snowglobe.test/fakes/kubelet"
)

// kubeletAnswer is what a script says instead of the functions of kubelet.Answer.
type kubeletAnswer struct {
	Logs   []string         `json:"logs,omitempty"`
	Every  *metav1.Duration `json:"every,omitempty"`  // the time before each line but the first
	Follow bool             `json:"follow,omitempty"` // the container runs on after the last line

	Stdout   string `json:"stdout,omitempty"`
	Stderr   string `json:"stderr,omitempty"`
	ExitCode int    `json:"exitCode,omitempty"`

	Forward string `json:"forward,omitempty"` // what comes from a port

	Page string `json:"page,omitempty"`
}

func serveKubelet(at fakePlace) (*fake, error) {
	node, err := kubelet.Serve(at.listener, kubelet.Config{Node: at.host, Hosts: []string{at.host}})
	if err != nil {
		return nil, err
	}
	show := func(r kubelet.Request) any {
		return map[string]any{
			"verb": r.Verb, "namespace": r.Namespace, "pod": r.Pod, "container": r.Container, "command": r.Command,
			"path": r.Path, "user": r.User,
		}
	}
	asked := func(r kubelet.Request) string {
		if r.Pod == "" {
			return r.Method + " " + r.Path
		}
		return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Verb, place(r.Namespace, r.Pod), r.Container, strings.Join(r.Command, " ")))
	}
	said := func(kubelet.Answer) string { return "answered" }
	return &fake{
		server: node, ca: node.CA(),
		use: useOf(node.Requests, show, kubeletReply), calls: callsOf(node.Requests, asked, said),
		files: map[string][]byte{certificateExtension: node.CA()},
	}, nil
}

// kubeletReply does what is said for whatever is asked.
func kubeletReply(content json.RawMessage) (reply[kubelet.Request, kubelet.Answer], error) {
	var said kubeletAnswer
	if err := yaml.UnmarshalStrict(content, &said); err != nil {
		return nil, err
	}
	if said.Every != nil && said.Every.Duration <= 0 {
		return nil, errors.New("every is a time above 0, such as 10s")
	}
	return always[kubelet.Request](kubelet.Answer{
		Logs: said.writeLogs,
		Process: func(_ context.Context, p *kubelet.Process) (int, error) {
			_, err := io.WriteString(p.Stdout, said.Stdout)
			_, errOfStderr := io.WriteString(p.Stderr, said.Stderr)
			return said.ExitCode, errors.Join(err, errOfStderr)
		},
		Forward: func(_ context.Context, _ int, conn net.Conn) error {
			_, err := io.WriteString(conn, said.Forward)
			return err
		},
		Page: []byte(said.Page),
	}), nil
}

// writeLogs writes the lines until the client leaves.
func (k kubeletAnswer) writeLogs(ctx context.Context, w io.Writer) error {
	for i, line := range k.Logs {
		if i > 0 && k.Every != nil {
			select {
			case <-time.After(k.Every.Duration):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			return err
		}
	}
	if k.Follow {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return nil
}
