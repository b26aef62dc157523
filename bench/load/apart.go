package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/client-go/rest"

	"snowglobe.test/bench/child"
	"snowglobe.test/bench/measure"
)

// ChildKind names the kind of child process that runs the clients of a load.
const ChildKind = "load"

// Request asks a child process to run the clients of a load on the API servers of its parent, so
// that the CPU time and the memory of the parent are those of the servers.
type Request struct {
	Options   Options
	Transport string
	Servers   []*access
	Sampled   *access // of the first watcher
}

// access is what another process needs of a rest.Config. The configuration for a server that this
// process has started has nothing else in it.
type access struct {
	Host string
	TLS  rest.TLSClientConfig
}

func accessOf(config *rest.Config) *access {
	if config == nil {
		return nil
	}
	return &access{config.Host, config.TLSClientConfig}
}

func (a *access) config() *rest.Config {
	if a == nil {
		return nil
	}
	return &rest.Config{Host: a.Host, TLSClientConfig: a.TLS}
}

// reached is how the process reaches the servers.
func (r Request) reached() Servers {
	to := Servers{Sampled: r.Sampled.config()}
	for _, server := range r.Servers {
		to.Configs = append(to.Configs, server.config())
	}
	return to
}

// loadAnswer is a line that the process prints: a phase that it has reached and waits in until it
// reads a line, or the end.
type loadAnswer struct {
	Phase   measure.Phase  `json:"phase,omitempty"`
	Load    *Result        `json:"load,omitempty"`
	Sampled []SampledEvent `json:"sampled,omitempty"`
	Defects string         `json:"defects,omitempty"` // the text of an ErrDelivery
	Error   string         `json:"error,omitempty"`   // of a load that was not measured
}

// RunApart is Run in a process of its own. It calls comesTo at each phase of the load.
func RunApart(ctx context.Context, opts Options, transport string, to Servers, comesTo func(measure.Phase)) (*Result,
	error) {
	var answer loadAnswer
	request := Request{Options: opts, Transport: transport, Sampled: accessOf(to.Sampled)}
	for _, server := range to.Configs {
		request.Servers = append(request.Servers, accessOf(server))
	}
	err := child.Converse(ctx, ChildKind, request, opts.Progress, func(line []byte, reply io.Writer) error {
		answer = loadAnswer{}
		if err := json.Unmarshal(line, &answer); err != nil {
			return fmt.Errorf("the process of the clients printed %q: %w", line, err)
		}
		if answer.Phase == "" {
			return nil
		}
		comesTo(answer.Phase)
		_, err := fmt.Fprintln(reply)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case answer.Error != "":
		return nil, errors.New(answer.Error)
	case err != nil:
		return nil, err
	case answer.Load == nil:
		return nil, errors.New("the process of the clients ended without a result")
	}
	answer.Load.Sampled = answer.Sampled
	if answer.Defects != "" {
		return answer.Load, &deliveryError{answer.Defects}
	}
	return answer.Load, nil
}

// Child runs the load that is asked for, and tells its phases and its result.
func Child(ctx context.Context, in *bufio.Reader, out, progress io.Writer, request Request) error {
	request.Options.Progress = progress
	tell := json.NewEncoder(out)
	var lost error
	load, err := Run(ctx, request.Options, request.Transport, OnAPIServer(request.reached()), func(p measure.Phase) {
		lost = errors.Join(lost, tell.Encode(loadAnswer{Phase: p}))
		if _, err := in.ReadString('\n'); err != nil {
			lost = errors.Join(lost, fmt.Errorf("the process of the API server has ended: %w", err))
		}
	})
	answer := loadAnswer{Load: load}
	if load != nil {
		answer.Sampled = load.Sampled
	}
	delivery := &deliveryError{}
	switch {
	case lost != nil:
		return lost
	case errors.As(err, &delivery):
		answer.Defects = delivery.defects
	case err != nil:
		answer.Error = err.Error()
	}
	return tell.Encode(answer)
}
