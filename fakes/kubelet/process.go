package kubelet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"snowglobe.test/fakes/stub"
)

// ProcessFunc plays a process of a container. The exit code goes to the client, if the
// protocol has exit codes. An error says that the process could not be run or has been
// lost; after stub.ErrBreak the connection is broken off in the middle. The context
// ends when the client leaves or the kubelet stops.
type ProcessFunc func(ctx context.Context, p *Process) (exitCode int, err error)

// Process is what a ProcessFunc is given: the request, and the streams of its client.
type Process struct {
	Request Request
	Stdin   io.Reader // at its end from the beginning, if the client has none
	Stdout  io.Writer // leads nowhere, if the client doesn't want it
	Stderr  io.Writer // the same
	TTY     bool
	// Resize has the sizes of the terminal, and is closed when the client leaves.
	Resize <-chan Size
}

// Size is the size of a terminal, in characters.
type Size struct{ Width, Height uint16 }

// serveProcess serves exec and attach.
func (k *Kubelet) serveProcess(w http.ResponseWriter, r *http.Request, request Request, answer Answer) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		stub.WriteError(w, text(http.StatusBadRequest, "%v", err))
		return
	}
	if answer.Process == nil {
		stub.WriteError(w, noProcess(request))
		return
	}
	taken, ctx := take(w, r)
	defer taken.release()
	streams, err := openStreams(taken, r.WithContext(ctx), options)
	if err != nil {
		return // openStreams has told the client
	}
	session := k.begin(request, streams.protocol, 0)
	code, err := 0, errNoReturn
	defer func() { k.end(session, code, err) }()
	defer streams.close()
	code, err = streams.run(ctx, request, options.TTY, answer.Process)
	if errors.Is(err, stub.ErrBreak) {
		taken.breakOff()
		return
	}
	if sending := streams.sendStatus(request.Verb, code, err); err == nil {
		err = sending
	}
}

func noProcess(request Request) error {
	field := "Exec"
	if request.Verb == "attach" {
		field = "Attach"
	}
	return fmt.Errorf("%s of container %q of pod %s/%s: nothing plays the process: set Container.%s, or Answer.Process in a rule",
		request.Verb, request.Container, request.Namespace, request.Pod, field)
}

// run plays a process on the streams.
func (s *streams) run(ctx context.Context, request Request, tty bool, process ProcessFunc) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resize := make(chan Size)
	s.joined.Go(func() {
		defer close(resize)
		for decoder := json.NewDecoder(s.resize); ; {
			var size Size
			if decoder.Decode(&size) != nil {
				return
			}
			select {
			case resize <- size:
			case <-ctx.Done():
				return
			}
		}
	})
	return process(ctx, &Process{
		Request: request, Stdin: s.stdin, Stdout: s.stdout, Stderr: s.stderr, TTY: tty, Resize: resize,
	})
}

// sendStatus tells the client how the process has ended, in the form of the protocol.
func (s *streams) sendStatus(verb string, code int, err error) error {
	status := metav1.Status{Status: metav1.StatusSuccess}
	switch {
	case err != nil:
		did := "executing command in"
		if verb == "attach" {
			did = "attaching to"
		}
		status = apierrors.NewInternalError(fmt.Errorf("error %s container: %w", did, err)).Status()
	case code != 0:
		status = metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
				Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code),
			}}},
			Message: fmt.Sprintf("command terminated with non-zero exit code: exit status %d", code),
		}
	}
	if !s.jsonStatus() {
		if status.Status == metav1.StatusSuccess {
			return nil
		}
		_, err := io.WriteString(s.status, status.Message)
		return err
	}
	encoded, err := json.Marshal(status)
	if err != nil {
		return err
	}
	_, err = s.status.Write(encoded)
	return err
}

// serveRun serves run, which has no streams: the output is the answer.
func (k *Kubelet) serveRun(w http.ResponseWriter, r *http.Request, request Request, answer Answer) {
	if answer.Process == nil {
		stub.WriteError(w, noProcess(request))
		return
	}
	resize := make(chan Size)
	close(resize)
	var output bytes.Buffer
	session, code, err := k.begin(request, "", 0), 0, errNoReturn
	defer func() { k.end(session, code, err) }()
	code, err = answer.Process(r.Context(), &Process{
		Request: request, Stdin: bytes.NewReader(nil), Stdout: &output, Stderr: &output, Resize: resize,
	})
	failure := err
	if err == nil && code != 0 {
		failure = fmt.Errorf("command '%s' exited with %d: %s", request.Query.Get("cmd"), code, &output)
	}
	if failure != nil {
		stub.WriteError(w, failure)
		return
	}
	w.Header().Set("Content-Type", "application/json") // a kubelet says so, whatever the output is
	_, _ = w.Write(output.Bytes())                     // the client may be gone
}
