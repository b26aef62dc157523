package konnectivity

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"snowglobe.test/fakes/stub"
)

// ServeGRPC serves konnectivity's gRPC in plain text, as over a Unix socket. The
// listener is the proxy's from now on.
func (p *Proxy) ServeGRPC(l net.Listener) {
	g := grpc.NewServer(grpc.WaitForHandlers(true))
	client.RegisterProxyServiceServer(g, &service{proxy: p})
	p.mu.Lock()
	p.grpc = append(p.grpc, g)
	p.mu.Unlock()
	p.serves.Go(func() { _ = g.Serve(l) }) // it ends with the listener
}

type service struct {
	client.UnimplementedProxyServiceServer
	proxy *Proxy
}

// Proxy implements client.ProxyServiceServer. Upstream's client has one tunnel on a
// stream; the protocol allows for more.
func (s *service) Proxy(packets client.ProxyService_ProxyServer) error {
	ctx, cancel := context.WithCancelCause(packets.Context())
	st := &stream{
		proxy: s.proxy, packets: packets, ctx: ctx, cancel: cancel, sending: make(chan struct{}, 1),
		dials: map[int64]context.CancelFunc{}, tunnels: map[int64]*tunnel{},
	}
	// Only the end of this function makes Recv return.
	s.proxy.serves.Go(st.read)
	<-ctx.Done()
	st.running.Wait()
	if err := context.Cause(ctx); errors.Is(err, stub.ErrBreak) || errors.Is(err, errCut) {
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}

// stream is a stream of packets from and to one client.
type stream struct {
	proxy   *Proxy
	packets client.ProxyService_ProxyServer
	ctx     context.Context
	cancel  context.CancelCauseFunc
	running sync.WaitGroup // dials and tunnels
	sending chan struct{}  // has an element while a packet is sent

	mu      sync.Mutex
	dials   map[int64]context.CancelFunc // by the number that the client chose
	tunnels map[int64]*tunnel            // by the number that the proxy chose, from 1
	last    int64
}

// read handles the packets of the client until it leaves.
func (s *stream) read() {
	defer s.cancel(nil)
	for {
		packet, err := s.packets.Recv()
		if err != nil {
			return
		}
		switch packet.Type {
		case client.PacketType_DIAL_REQ:
			s.beginDial(packet.GetDialRequest())
		case client.PacketType_DIAL_CLS:
			s.mu.Lock()
			cancel := s.dials[packet.GetCloseDial().GetRandom()]
			s.mu.Unlock()
			if cancel != nil {
				cancel()
			}
		case client.PacketType_DATA:
			if t := s.tunnel(packet.GetData().GetConnectID()); t != nil {
				if err := t.send(packet.GetData().GetData()); errors.Is(err, stub.ErrBreak) {
					s.cancel(err)
				}
			}
		case client.PacketType_CLOSE_REQ:
			if t := s.tunnel(packet.GetCloseRequest().GetConnectID()); t != nil {
				t.close(ByClient, nil)
			}
		}
	}
}

func (s *stream) tunnel(id int64) *tunnel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tunnels[id]
}

// beginDial dials in a goroutine of its own, which the tunnel lives in afterwards.
func (s *stream) beginDial(request *client.DialRequest) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	s.dials[request.GetRandom()] = cancel
	s.mu.Unlock()
	s.running.Go(func() {
		defer cancel()
		err := s.run(ctx, request)
		if errors.Is(err, stub.ErrBreak) || errors.Is(err, errCut) {
			s.cancel(err)
		}
	})
}

// run dials, and then serves the tunnel until it is closed. The error ends the stream if
// that is what was wanted.
func (s *stream) run(ctx context.Context, request *client.DialRequest) error {
	t, err := s.proxy.dial(ctx, Request{Protocol: GRPC, Address: request.GetAddress()})
	response := &client.DialResponse{Random: request.GetRandom()}
	if err != nil {
		if errors.Is(err, stub.ErrBreak) {
			return err
		}
		response.Error = err.Error()
		_ = s.send(dialResponse(response)) // the client may be gone
		return nil
	}
	s.mu.Lock()
	delete(s.dials, request.GetRandom())
	s.last++
	id := s.last
	s.tunnels[id] = t
	s.mu.Unlock()
	response.ConnectID = id
	if err := s.send(dialResponse(response)); err != nil {
		t.close(ByClient, err)
		return nil
	}
	err = t.receive(func(data []byte) error {
		return s.send(&client.Packet{Type: client.PacketType_DATA, Payload: &client.Packet_Data{
			Data: &client.Data{ConnectID: id, Data: bytes.Clone(data)},
		}})
	})
	s.mu.Lock()
	delete(s.tunnels, id)
	s.mu.Unlock()
	if cause := context.Cause(t.ctx); errors.Is(err, stub.ErrBreak) || errors.Is(cause, errCut) {
		return errors.Join(err, cause)
	}
	closed := &client.CloseResponse{ConnectID: id}
	if err := t.failure(); err != nil {
		closed.Error = err.Error()
	}
	_ = s.send(&client.Packet{Type: client.PacketType_CLOSE_RSP, Payload: &client.Packet_CloseResponse{CloseResponse: closed}}) // the client may be gone
	return nil
}

func dialResponse(response *client.DialResponse) *client.Packet {
	return &client.Packet{Type: client.PacketType_DIAL_RSP, Payload: &client.Packet_DialResponse{DialResponse: response}}
}

// send sends a packet, one at a time.
func (s *stream) send(packet *client.Packet) error {
	select {
	case s.sending <- struct{}{}:
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
	defer func() { <-s.sending }()
	return s.packets.Send(packet)
}
