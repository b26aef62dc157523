package etcdmain

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/tmc/grpc-websocket-proxy/wsproxy"
	etcdgateway "go.etcd.io/etcd/api/v3/etcdserverpb/gw"
	electiongateway "go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb/gw"
	lockgateway "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb/gw"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	"snowglobe.test/envtest/memnet"
)

// gateway is etcd's JSON gateway: its services at paths such as /v3/kv/put.
type gateway struct {
	http.Handler
	listener *memnet.Listener // at which it is a client of the server
	client   *grpc.ClientConn
	end      context.CancelFunc
}

func newGateway() (*gateway, error) {
	g := &gateway{listener: memnet.Listen()}
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return g.listener.DialContext(ctx) }
	var err error
	g.client, err = grpc.NewClient("passthrough:///etcd", grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, errors.Join(err, g.listener.Close())
	}
	ctx, end := context.WithCancel(context.Background())
	g.end = end
	mux := runtime.NewServeMux(runtime.WithMarshalerOption(runtime.MIMEWildcard, &runtime.HTTPBodyMarshaler{Marshaler: &runtime.JSONPb{
		MarshalOptions:   protojson.MarshalOptions{UseProtoNames: true},
		UnmarshalOptions: protojson.UnmarshalOptions{DiscardUnknown: true},
	}}))
	for _, register := range []func(context.Context, *runtime.ServeMux, *grpc.ClientConn) error{
		etcdgateway.RegisterKVHandler, etcdgateway.RegisterWatchHandler, etcdgateway.RegisterLeaseHandler, etcdgateway.RegisterClusterHandler,
		etcdgateway.RegisterMaintenanceHandler, etcdgateway.RegisterAuthHandler, lockgateway.RegisterLockHandler, electiongateway.RegisterElectionHandler,
	} {
		if err := register(ctx, mux, g.client); err != nil {
			return nil, errors.Join(err, g.close())
		}
	}
	g.Handler = wsproxy.WebsocketProxy(mux, wsproxy.WithMaxRespBodyBufferSize(maxGatewayAnswer), wsproxy.WithRequestMutator(asPost))
	return g, nil
}

// maxGatewayAnswer is etcd's limit for a message over a WebSocket.
const maxGatewayAnswer = 0x7fffffff

// asPost makes a stream over a WebSocket, which begins with a GET, the request that the gateway has.
func asPost(_ *http.Request, outgoing *http.Request) *http.Request {
	outgoing.Method = http.MethodPost
	return outgoing
}

// close ends the gateway's client. A nil gateway has none.
func (g *gateway) close() error {
	if g == nil {
		return nil
	}
	g.end()
	return errors.Join(g.client.Close(), g.listener.Close())
}
