package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"snowglobe.test/scenarios/engine"
)

func (c *Clients) PortForward() engine.Command {
	return engine.Command{
		Name:     "port-forward",
		Formerly: "forward",
		Args:     "[-n NAMESPACE] POD PORT",
		Asserts:  true,
		Summary:  "connect to a port of a pod, over SPDY, and print what it sends",
		Details:  `It fails if nothing is listening on the port, or if the connection breaks.`,
		Example:  "port-forward web-0 80\nstdout 'it snows'",
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			namespace := NamespaceFlag(flags)
			return func(ctx context.Context, args []string) error {
				port, err := strconv.ParseUint(args[1], 10, 16)
				if err != nil || port == 0 {
					return fmt.Errorf("%w: %q is not a port", engine.ErrUsage, args[1])
				}
				return c.portForward(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/portforward", *namespace, args[0]), args[1])
			}
		},
	}
}

// portForward prints what comes from a port.
func (c *Clients) portForward(ctx context.Context, path, port string) error {
	config, target, err := c.streamTo(path)
	if err != nil {
		return err
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport}
	streams, _, err := spdy.NegotiateStreaming(upgrader, client, request, portforward.PortForwardProtocolV1Name)
	if err != nil {
		return err
	}
	defer func() { _ = streams.Close() }()
	defer context.AfterFunc(ctx, func() { _ = streams.Close() })()
	failure, data, err := forwardedPort(streams, port)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(data, maxBodyBytes))
	c.run.Stdout.Write(content)
	if err != nil {
		return err
	}
	said, err := io.ReadAll(io.LimitReader(failure, maxBodyBytes))
	if err == nil && len(said) > 0 {
		err = errors.New(string(said))
	}
	return err
}

// forwardedPort opens the two streams of a connection to a port: of failures, and of what
// is sent. Nothing is sent from here.
func forwardedPort(streams httpstream.Connection, port string) (failure, data httpstream.Stream, err error) {
	open := func(kind string) (httpstream.Stream, error) {
		headers := http.Header{}
		headers.Set(corev1.StreamType, kind)
		headers.Set(corev1.PortHeader, port)
		headers.Set(corev1.PortForwardRequestIDHeader, "0")
		stream, err := streams.CreateStream(headers)
		if err != nil {
			return nil, err
		}
		return stream, stream.Close() // the way there; what comes back can be read
	}
	if failure, err = open(corev1.StreamTypeError); err != nil {
		return nil, nil, err
	}
	data, err = open(corev1.StreamTypeData)
	return failure, data, err
}
