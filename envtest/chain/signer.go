package chain

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	externaljwtv1 "k8s.io/externaljwt/apis/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// signerPatience is how long upstream waits for a signer.
const signerPatience = time.Minute

// awaitSigner waits until the signer of --service-account-signing-endpoint answers. Upstream leaves a
// connection to one that does not, with all that tries to make it.
func awaitSigner(ctx context.Context, run *options.ServerRunOptions) error {
	if run.ServiceAccountSigningEndpoint == "" || run.ServiceAccountSigningKeyFile != "" {
		return nil
	}
	conn, err := grpc.NewClient("passthrough:///"+run.ServiceAccountSigningEndpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return fmt.Errorf("--service-account-signing-endpoint: %w", err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, signerPatience)
	defer cancel()
	if _, err := externaljwtv1.NewExternalJWTSignerClient(conn).FetchKeys(ctx, &externaljwtv1.FetchKeysRequest{}); err != nil {
		return fmt.Errorf("--service-account-signing-endpoint: %w", err)
	}
	return nil
}
