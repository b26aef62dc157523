package kubelet

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// streams are those of an exec or an attach. What the client doesn't want is empty or
// leads nowhere.
type streams struct {
	protocol       string
	stdin, resize  io.Reader
	stdout, stderr io.Writer
	status         io.Writer

	shut   func()
	joined sync.WaitGroup // goroutines that read until the streams are shut
}

// close shuts the streams and waits for the goroutines that read them.
func (s *streams) close() {
	s.shut()
	s.joined.Wait()
}

// jsonStatus reports whether the protocol tells the status as an object, and not as the
// text of a failure.
func (s *streams) jsonStatus() bool {
	return strings.HasPrefix(s.protocol, "v4.") || strings.HasPrefix(s.protocol, "v5.")
}

// openStreams upgrades the connection. Errors have been told to the client.
func openStreams(taken *taken, r *http.Request, options *remotecommand.Options) (*streams, error) {
	if wsstream.IsWebSocketRequest(r) {
		return openWebSocket(taken, r, options)
	}
	return openSPDY(taken, r, options)
}

// openWebSocket opens the channels of a WebSocket, all protocols of which upstream's
// library understands. A real kubelet translates v5 to SPDY first, which only its
// container runtime sees.
func openWebSocket(taken *taken, r *http.Request, options *remotecommand.Options) (*streams, error) {
	channel := func(wanted bool, kind wsstream.ChannelType) wsstream.ChannelType {
		if wanted {
			return kind
		}
		return wsstream.IgnoreChannel
	}
	channels := []wsstream.ChannelType{
		remotecommand.StreamStdIn:  channel(options.Stdin, wsstream.ReadChannel),
		remotecommand.StreamStdOut: channel(options.Stdout, wsstream.WriteChannel),
		remotecommand.StreamStdErr: channel(options.Stderr, wsstream.WriteChannel),
		remotecommand.StreamErr:    wsstream.WriteChannel,
		remotecommand.StreamResize: wsstream.ReadChannel,
	}
	const base64 = wsstream.Base64ChannelWebSocketProtocol
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		"":                                 {Binary: true, Channels: channels},
		remotecommand.StreamProtocolV1Name: {Binary: true, Channels: channels},
		base64:                             {Binary: false, Channels: channels},
		remotecommand.StreamProtocolV4Name: {Binary: true, Channels: channels},
		"v4." + base64:                     {Binary: false, Channels: channels},
		remotecommand.StreamProtocolV5Name: {Binary: true, Channels: channels},
	})
	protocol, ends, err := conn.Open(taken, r)
	if err != nil {
		return nil, err
	}
	// An empty message says that the connection stands, as upstream has it.
	first := slices.IndexFunc(channels, func(c wsstream.ChannelType) bool { return c == wsstream.WriteChannel })
	_, _ = ends[first].Write(nil) // the client may be gone; the process will notice
	return &streams{
		protocol: protocol,
		stdin:    ends[remotecommand.StreamStdIn], resize: ends[remotecommand.StreamResize],
		stdout: ends[remotecommand.StreamStdOut], stderr: ends[remotecommand.StreamStdErr],
		status: ends[remotecommand.StreamErr],
		shut:   func() { _ = conn.Close() },
	}, nil
}

// openSPDY waits for the client to open all streams that its request speaks of.
func openSPDY(taken *taken, r *http.Request, options *remotecommand.Options) (*streams, error) {
	protocol, err := httpstream.Handshake(r, taken, remotecommand.SupportedStreamingProtocols)
	if err != nil {
		return nil, err
	}
	arrivals := newArrivals(r.Context())
	conn := spdy.NewResponseUpgrader().UpgradeResponse(taken, r, arrivals.accept)
	if conn == nil {
		return nil, errors.New("the upgrade to SPDY has failed")
	}
	arrivals.watch(conn, taken)
	s := &streams{
		protocol: protocol,
		stdin:    strings.NewReader(""), resize: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
		shut: func() { arrivals.shut(conn) },
	}
	canResize := protocol != remotecommand.StreamProtocolV1Name && protocol != remotecommand.StreamProtocolV2Name
	missing := map[string]func(httpstream.Stream){remotecommand.StreamTypeError: func(st httpstream.Stream) { s.status = st }}
	want := func(wanted bool, name string, set func(httpstream.Stream)) {
		if wanted {
			missing[name] = set
		}
	}
	want(options.Stdin, remotecommand.StreamTypeStdin, func(st httpstream.Stream) { s.stdin = st })
	want(options.Stdout, remotecommand.StreamTypeStdout, func(st httpstream.Stream) { s.stdout = st })
	want(options.Stderr, remotecommand.StreamTypeStderr, func(st httpstream.Stream) { s.stderr = st })
	want(options.TTY && canResize, remotecommand.StreamTypeResize, func(st httpstream.Stream) { s.resize = st })

	for len(missing) > 0 {
		stream, err := arrivals.next(remotecommand.DefaultStreamCreationTimeout)
		if err != nil {
			s.close()
			return nil, err
		}
		kind := stream.Headers().Get(remotecommand.StreamType)
		if set := missing[kind]; set != nil {
			set(stream)
		}
		delete(missing, kind)
	}
	return s, nil
}

// arrivals are the streams that a client opens on a SPDY connection. All of them are
// reset in the end: one that is not read would keep upstream's goroutines waiting.
type arrivals struct {
	ctx     context.Context
	arrived chan arrival

	mu       sync.Mutex
	all      []httpstream.Stream
	ends     chan struct{} // closed when the connection is shut
	watching sync.WaitGroup
}

type arrival struct {
	httpstream.Stream
	replied <-chan struct{}
}

func newArrivals(ctx context.Context) *arrivals {
	return &arrivals{ctx: ctx, arrived: make(chan arrival), ends: make(chan struct{})}
}

// watch ends the context of the request when the client leaves, which it may announce
// before it closes the connection.
func (a *arrivals) watch(conn httpstream.Connection, taken *taken) {
	a.watching.Go(func() {
		<-conn.CloseChan()
		taken.cancel(errLeft)
	})
}

// accept is called for each new stream. Upstream answers the client when it returns.
func (a *arrivals) accept(stream httpstream.Stream, replied <-chan struct{}) error {
	a.mu.Lock()
	select {
	case <-a.ends:
		a.mu.Unlock()
		return errors.New("the connection is being closed")
	default:
	}
	a.all = append(a.all, stream)
	a.mu.Unlock()
	select {
	case a.arrived <- arrival{stream, replied}:
		return nil
	case <-a.ends:
		return errors.New("the connection is being closed")
	case <-a.ctx.Done():
		return context.Cause(a.ctx)
	}
}

// next returns the next stream once the client knows that it is accepted. A timeout of
// 0 is none.
func (a *arrivals) next(timeout time.Duration) (httpstream.Stream, error) {
	var expired <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case next := <-a.arrived:
		select {
		case <-next.replied:
			return next.Stream, nil
		case <-a.ctx.Done():
			return nil, context.Cause(a.ctx)
		}
	case <-expired:
		return nil, errors.New("timed out waiting for client to create streams")
	case <-a.ctx.Done():
		return nil, context.Cause(a.ctx)
	}
}

// shut closes the connection and all streams of it, and waits until upstream has seen
// the end.
func (a *arrivals) shut(conn httpstream.Connection) {
	a.mu.Lock()
	close(a.ends)
	all := slices.Clone(a.all)
	a.mu.Unlock()
	_ = conn.Close() // the client may have done so
	for _, stream := range all {
		_ = stream.Reset() // it may have ended
	}
	a.watching.Wait()
}

// forget resets streams that have ended, so that a long connection doesn't collect
// them.
func (a *arrivals) forget(conn httpstream.Connection, streams ...httpstream.Stream) {
	conn.RemoveStreams(streams...)
	a.mu.Lock()
	a.all = slices.DeleteFunc(a.all, func(s httpstream.Stream) bool { return slices.Contains(streams, s) })
	a.mu.Unlock()
	for _, stream := range streams {
		_ = stream.Reset() // the client may have done so
	}
}
