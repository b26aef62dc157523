package envtest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	externaljwtv1 "k8s.io/externaljwt/apis/v1"

	"snowglobe.test/envtest"
)

// TestSigner has a program of its own sign tokens of service accounts.
func TestSigner(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cp := envtest.Start(t, envtest.WithFlags("--service-account-signing-endpoint="+serveSigner(t, &signer{key: key})))
	accounts := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ServiceAccounts("default")
	_, err = accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "signed"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	request, err := accounts.CreateToken(t.Context(), "signed", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, "system:serviceaccount:default:signed", nameOf(cp, request.Status.Token))
}

// TestNoSigner is about sockets where no signer answers. Upstream waits a minute for one.
func TestNoSigner(t *testing.T) {
	const flag = "--service-account-signing-endpoint"
	t.Run("another server", func(t *testing.T) {
		refused(t, opt(envtest.WithFlags(flag+"="+serveSigner(t, nil))), "stage options: "+flag+": rpc error: code = Unimplemented")
	})
	t.Run("nobody", func(t *testing.T) {
		err := envtest.SimulateContext(func(context.Context, *envtest.ControlPlane) error { return nil },
			envtest.WithTimeouts(2*time.Second, 0), envtest.WithFlags(flag+"="+filepath.Join(t.TempDir(), "none")))
		require.ErrorContains(t, err, "not within 2s, the limit of a start")
		assert.ErrorContains(t, err, flag)
		assert.NotContains(t, err.Error(), "\n", "the error is longer than a line")
	})
}

// serveSigner serves at a socket, and returns its path.
func serveSigner(t *testing.T, s externaljwtv1.ExternalJWTSignerServer) string {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := grpc.NewServer()
	if s != nil {
		externaljwtv1.RegisterExternalJWTSignerServer(server, s)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		assert.NoError(t, <-served)
	})
	return socket
}

type signer struct {
	externaljwtv1.UnimplementedExternalJWTSignerServer
	key *ecdsa.PrivateKey
}

func (s *signer) Sign(_ context.Context, req *externaljwtv1.SignJWTRequest) (*externaljwtv1.SignJWTResponse, error) {
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"snow","typ":"JWT"}`))
	hash := sha256.Sum256([]byte(header + "." + req.Claims))
	r, v, err := ecdsa.Sign(rand.Reader, s.key, hash[:])
	if err != nil {
		return nil, err
	}
	signature := append(r.FillBytes(make([]byte, 32)), v.FillBytes(make([]byte, 32))...)
	return &externaljwtv1.SignJWTResponse{Header: header, Signature: base64.RawURLEncoding.EncodeToString(signature)}, nil
}

func (s *signer) FetchKeys(context.Context, *externaljwtv1.FetchKeysRequest) (*externaljwtv1.FetchKeysResponse, error) {
	public, err := x509.MarshalPKIXPublicKey(s.key.Public())
	return &externaljwtv1.FetchKeysResponse{
		Keys: []*externaljwtv1.Key{{KeyId: "snow", Key: public}}, DataTimestamp: timestamppb.Now(), RefreshHintSeconds: 60,
	}, err
}

func (s *signer) Metadata(context.Context, *externaljwtv1.MetadataRequest) (*externaljwtv1.MetadataResponse, error) {
	return &externaljwtv1.MetadataResponse{MaxTokenExpirationSeconds: 3600}, nil
}
