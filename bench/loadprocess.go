package bench

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

// loadRequest asks a process of its own for a load on an API server of another, so that what the
// server's process uses is the server's.
type loadRequest struct {
	Options   WatchOptions
	Transport string
	Servers   []*access
	Sampled   *access // of the first watcher
}

// access is what another process has to know of a rest.Config: of a server that this process has
// started, there is no more in it.
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
func (r loadRequest) reached() reached {
	to := reached{sampled: r.Sampled.config()}
	for _, server := range r.Servers {
		to.servers = append(to.servers, server.config())
	}
	return to
}

// loadAnswer is a line that the process prints: a phase that it has reached and waits in until it
// reads a line, or the end.
type loadAnswer struct {
	Phase   measure.Phase  `json:"phase,omitempty"`
	Load    *WatchLoad     `json:"load,omitempty"`
	Sampled []sampledEvent `json:"sampled,omitempty"`
	Defects string         `json:"defects,omitempty"` // the text of an ErrDelivery
	Error   string         `json:"error,omitempty"`   // of a load that was not measured
}

// runApart is runLoad in a process of its own.
func runApart(ctx context.Context, opts WatchOptions, transport string, to reached, comesTo func(measure.Phase)) (*WatchLoad, error) {
	var answer loadAnswer
	request := loadRequest{Options: opts, Transport: transport, Sampled: accessOf(to.sampled)}
	for _, server := range to.servers {
		request.Servers = append(request.Servers, accessOf(server))
	}
	err := child.Converse(ctx, childLoad, request, opts.Progress, func(line []byte, reply io.Writer) error {
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
	answer.Load.sampled = answer.Sampled
	if answer.Defects != "" {
		return answer.Load, &deliveryError{answer.Defects}
	}
	return answer.Load, nil
}

// loadChild runs the load that is asked for, and tells its phases and its result.
func loadChild(ctx context.Context, in *bufio.Reader, out, progress io.Writer, request loadRequest) error {
	request.Options.Progress = progress
	tell := json.NewEncoder(out)
	var lost error
	load, err := runLoad(ctx, request.Options, request.Transport, onAPIServer(request.reached()), func(p measure.Phase) {
		lost = errors.Join(lost, tell.Encode(loadAnswer{Phase: p}))
		if _, err := in.ReadString('\n'); err != nil {
			lost = errors.Join(lost, fmt.Errorf("the process of the API server has ended: %w", err))
		}
	})
	answer := loadAnswer{Load: load}
	if load != nil {
		answer.Sampled = load.sampled
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
