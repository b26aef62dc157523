package process

import (
	"context"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/metrics"
	kmsapi "k8s.io/kms/apis/v2"
	kmsservice "k8s.io/kms/pkg/service"
)

// Dialer connects to an address, like net.Dialer's DialContext.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// DialKMS says how the member reaches its KMS v2 plugins, whose network is "unix" and
// whose address is a path. Nil is by the sockets of the machine, as upstream does. It
// must be called before the member loads its encryption configuration.
func (m *Member) DialKMS(dial Dialer) { m.dialKMS = dial }

// takeOverKMS lets each member reach its plugins in its own way. Upstream's clients dial
// sockets, and what makes them is a variable, exported for upstream's own tests.
func takeOverKMS() {
	factory := encryptionconfig.EnvelopeKMSv2ServiceFactory
	onGiveBack(func() { encryptionconfig.EnvelopeKMSv2ServiceFactory = factory })
	encryptionconfig.EnvelopeKMSv2ServiceFactory = func(ctx context.Context, endpoint, provider string, timeout time.Duration) (kmsservice.Service, error) {
		if m := current(); m != nil && m.dialKMS != nil {
			return newKMSClient(ctx, m.dialKMS, strings.TrimPrefix(endpoint, "unix://"), provider, timeout)
		}
		return factory(ctx, endpoint, provider, timeout)
	}
}

// kmsClient calls a KMS v2 plugin.
type kmsClient struct {
	plugin kmsapi.KeyManagementServiceClient
}

// newKMSClient returns a client whose connection is closed when the context ends. Unlike
// upstream's it does not wait for a plugin that is not there: upstream asks it under a
// mutex, for which health checks wait, and in virtual time no goroutine may wait so.
func newKMSClient(ctx context.Context, dial Dialer, path, provider string, timeout time.Duration) (kmsservice.Service, error) {
	conn, err := grpc.NewClient("passthrough:///"+path,
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) { return dial(ctx, "unix", path) }),
		grpc.WithChainUnaryInterceptor(limitKMS(provider, timeout)),
	)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &kmsClient{kmsapi.NewKeyManagementServiceClient(conn)}, nil
}

// limitKMS ends each call in time, and keeps upstream's metric of the calls.
func limitKMS(provider string, timeout time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		began := time.Now()
		err := invoke(ctx, method, request, reply, conn, opts...)
		metrics.RecordKMSOperationLatency(provider, method, time.Since(began), err)
		return err
	}
}

// Status implements kmsservice.Service.
func (k *kmsClient) Status(ctx context.Context) (*kmsservice.StatusResponse, error) {
	answer, err := k.plugin.Status(ctx, &kmsapi.StatusRequest{})
	if err != nil {
		return nil, err
	}
	return &kmsservice.StatusResponse{Version: answer.Version, Healthz: answer.Healthz, KeyID: answer.KeyId}, nil
}

// Encrypt implements kmsservice.Service.
func (k *kmsClient) Encrypt(ctx context.Context, uid string, plaintext []byte) (*kmsservice.EncryptResponse, error) {
	answer, err := k.plugin.Encrypt(ctx, &kmsapi.EncryptRequest{Uid: uid, Plaintext: plaintext})
	if err != nil {
		return nil, err
	}
	return &kmsservice.EncryptResponse{Ciphertext: answer.Ciphertext, KeyID: answer.KeyId, Annotations: answer.Annotations}, nil
}

// Decrypt implements kmsservice.Service.
func (k *kmsClient) Decrypt(ctx context.Context, uid string, request *kmsservice.DecryptRequest) ([]byte, error) {
	answer, err := k.plugin.Decrypt(ctx, &kmsapi.DecryptRequest{
		Uid: uid, Ciphertext: request.Ciphertext, KeyId: request.KeyID, Annotations: request.Annotations,
	})
	if err != nil {
		return nil, err
	}
	return answer.Plaintext, nil
}
