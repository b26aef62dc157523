package kms_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/kms"
	"snowglobe.test/fakes/stub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func unixSocket(t *testing.T) net.Listener {
	t.Helper()
	folder, err := os.MkdirTemp("", "kms") // t.TempDir may be too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	l, err := net.Listen("unix", filepath.Join(folder, "kms.sock"))
	require.NoError(t, err)
	return l
}

// everywhere runs a test on a Unix socket and in a bubble of virtual time.
func everywhere(t *testing.T, test func(*testing.T, net.Listener)) {
	t.Run("socket", func(t *testing.T) { test(t, unixSocket(t)) })
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, memnet.Listen()) })
	})
}

func serve(t *testing.T, l net.Listener, config kms.Config) *kms.Plugin {
	t.Helper()
	plugin := kms.Serve(l, config)
	t.Cleanup(func() { assert.NoError(t, plugin.Stop(context.Background())) })
	return plugin
}

func dial(t *testing.T, l net.Listener) kmsapi.KeyManagementServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///plugin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			if memory, ok := l.(*memnet.Listener); ok {
				return memory.DialContext(ctx)
			}
			return (&net.Dialer{}).DialContext(ctx, "unix", l.Addr().String())
		}))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, conn.Close()) })
	return kmsapi.NewKeyManagementServiceClient(conn)
}

var secret = []byte("attack at dawn")

func encrypt(t *testing.T, client kmsapi.KeyManagementServiceClient) *kmsapi.EncryptResponse {
	t.Helper()
	response, err := client.Encrypt(t.Context(), &kmsapi.EncryptRequest{Uid: "1", Plaintext: secret})
	require.NoError(t, err)
	return response
}

func decrypt(t *testing.T, client kmsapi.KeyManagementServiceClient, of *kmsapi.EncryptResponse) (string, error) {
	t.Helper()
	response, err := client.Decrypt(t.Context(), &kmsapi.DecryptRequest{
		Uid: "2", Ciphertext: of.Ciphertext, KeyId: of.KeyId, Annotations: of.Annotations})
	return string(response.GetPlaintext()), err
}

func TestRoundTrip(t *testing.T) {
	everywhere(t, func(t *testing.T, l net.Listener) {
		plugin := serve(t, l, kms.Config{})
		client := dial(t, l)
		first := encrypt(t, client)
		assert.Equal(t, "key-1", first.KeyId)
		assert.NotContains(t, string(first.Ciphertext), string(secret))
		assert.NotEqual(t, first.Ciphertext, encrypt(t, client).Ciphertext)
		plaintext, err := decrypt(t, client, first)
		require.NoError(t, err)
		assert.Equal(t, string(secret), plaintext)

		assert.Equal(t, "key-2", plugin.Rotate())
		state, err := client.Status(t.Context(), &kmsapi.StatusRequest{})
		require.NoError(t, err)
		assert.Equal(t, "v2 ok key-2", strings.Join([]string{state.Version, state.Healthz, state.KeyId}, " "))
		second := encrypt(t, client)
		assert.Equal(t, "key-2", second.KeyId)
		_, err = decrypt(t, client, first)
		require.NoError(t, err, "the old key is kept")
		plugin.DropOldKeys()
		_, err = decrypt(t, client, second)
		require.NoError(t, err)
		_, err = decrypt(t, client, first)
		assert.Equal(t, codes.NotFound, status.Code(err))
		assert.ErrorContains(t, err, `there is no key "key-1"`)

		plugin.SetHealthz("the HSM is on fire")
		state, err = client.Status(t.Context(), &kmsapi.StatusRequest{})
		require.NoError(t, err)
		assert.Equal(t, "the HSM is on fire", state.Healthz)
	})
}

// TestAuthenticated has each part of what was encrypted changed.
func TestAuthenticated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		plugin := serve(t, l, kms.Config{})
		client := dial(t, l)
		plugin.Rotate()
		for name, change := range map[string]func(*kmsapi.EncryptResponse){
			"ciphertext":  func(of *kmsapi.EncryptResponse) { of.Ciphertext[0] ^= 1 },
			"tag":         func(of *kmsapi.EncryptResponse) { of.Ciphertext = of.Ciphertext[:len(of.Ciphertext)-1] },
			"key":         func(of *kmsapi.EncryptResponse) { of.KeyId = "key-1" },
			"annotations": func(of *kmsapi.EncryptResponse) { of.Annotations = nil },
			"nonce": func(of *kmsapi.EncryptResponse) {
				for name := range of.Annotations {
					of.Annotations[name][0] ^= 1
				}
			},
		} {
			changed := encrypt(t, client)
			change(changed)
			_, err := decrypt(t, client, changed)
			assert.Equal(t, codes.InvalidArgument, status.Code(err), "%s: %v", name, err)
		}
	})
}

func TestRecords(t *testing.T) {
	for _, asked := range []bool{false, true} {
		t.Run(fmt.Sprint("plaintexts ", asked), func(t *testing.T) {
			everywhere(t, func(t *testing.T, l net.Listener) {
				plugin := serve(t, l, kms.Config{RecordPlaintexts: asked})
				client := dial(t, l)
				encrypted := encrypt(t, client)
				_, err := decrypt(t, client, encrypted)
				require.NoError(t, err)
				encrypts, decrypts := plugin.Encrypt.Calls(), plugin.Decrypt.Calls()
				require.Len(t, encrypts, 1)
				require.Len(t, decrypts, 1)
				assert.Equal(t, "1", encrypts[0].Request.UID)
				assert.Equal(t, len(secret), encrypts[0].Request.Bytes)
				assert.Equal(t, encrypted.Ciphertext, encrypts[0].Answer.Ciphertext)
				assert.Equal(t, "key-1", decrypts[0].Request.KeyID)
				assert.Equal(t, len(secret), decrypts[0].Answer.Bytes)
				want := 0
				if asked {
					want = 2
				}
				assert.Equal(t, want, strings.Count(fmt.Sprintf("%+v %+v", encrypts, decrypts), fmt.Sprint(secret)))
			})
		})
	}
}

func TestRules(t *testing.T) {
	everywhere(t, func(t *testing.T, l net.Listener) {
		plugin := serve(t, l, kms.Config{})
		client := dial(t, l)
		encrypted := encrypt(t, client)

		undo := plugin.Encrypt.Use(kms.EncryptRule{Answer: plugin.DistortEncrypt(func(answer *kms.EncryptAnswer) { answer.KeyID = "key-9" })})
		assert.Equal(t, "key-9", encrypt(t, client).KeyId)
		undo()
		plugin.Status.Use(kms.StatusRule{Times: 1, Answer: plugin.DistortStatus(func(answer *kms.StatusAnswer) { answer.Version = "v3" })})
		state, err := client.Status(t.Context(), &kmsapi.StatusRequest{})
		require.NoError(t, err)
		assert.Equal(t, "v3", state.Version)
		plugin.Decrypt.Use(kms.DecryptRule{Times: 1, Answer: func(context.Context, kms.DecryptRequest) (kms.DecryptAnswer, error) {
			return kms.DecryptAnswer{Plaintext: []byte("retreat")}, nil
		}})
		plaintext, err := decrypt(t, client, encrypted)
		require.NoError(t, err)
		assert.Equal(t, "retreat", plaintext)

		for _, c := range []struct {
			failure error
			code    codes.Code
		}{
			{errors.New("disk full"), codes.Internal},
			{status.Error(codes.ResourceExhausted, "busy"), codes.ResourceExhausted},
			{fmt.Errorf("wrapped: %w", stub.ErrBreak), codes.Unavailable},
		} {
			undos := []func(){
				plugin.Status.Reply(kms.StatusAnswer{}, c.failure),
				plugin.Encrypt.Reply(kms.EncryptAnswer{}, c.failure),
				plugin.Decrypt.Reply(kms.DecryptAnswer{}, c.failure),
			}
			_, err := client.Status(t.Context(), &kmsapi.StatusRequest{})
			assert.Equal(t, c.code, status.Code(err), err)
			_, err = client.Encrypt(t.Context(), &kmsapi.EncryptRequest{Uid: "1", Plaintext: secret}, grpc.WaitForReady(true))
			assert.Equal(t, c.code, status.Code(err), err)
			_, err = client.Decrypt(t.Context(), &kmsapi.DecryptRequest{Uid: "2", Ciphertext: []byte("x"), KeyId: "key-1"}, grpc.WaitForReady(true))
			assert.Equal(t, c.code, status.Code(err), err)
			for _, undo := range undos {
				undo()
			}
		}
		_, err = client.Status(t.Context(), &kmsapi.StatusRequest{}, grpc.WaitForReady(true))
		assert.NoError(t, err, "the client connects again")
	})
}

func TestRefuses(t *testing.T) {
	everywhere(t, func(t *testing.T, l net.Listener) {
		plugin := serve(t, l, kms.Config{})
		client := dial(t, l)
		long := make([]byte, 1<<10+1)
		for i, c := range []struct {
			request *kmsapi.DecryptRequest
			want    string
		}{
			{&kmsapi.DecryptRequest{KeyId: "k", Ciphertext: long[:1]}, "the request has no uid"},
			{&kmsapi.DecryptRequest{Uid: "1", Ciphertext: long[:1]}, "the key id has 0 bytes, want 1 to 1024"},
			{&kmsapi.DecryptRequest{Uid: "1", Ciphertext: long[:1], KeyId: string(long)}, "the key id has 1025 bytes"},
			{&kmsapi.DecryptRequest{Uid: "1", KeyId: "k"}, "the ciphertext has 0 bytes, want 1 to 1024"},
			{&kmsapi.DecryptRequest{Uid: "1", KeyId: "k", Ciphertext: long}, "the ciphertext has 1025 bytes"},
		} {
			_, err := client.Decrypt(t.Context(), c.request)
			assert.Equal(t, codes.InvalidArgument, status.Code(err))
			assert.ErrorContains(t, err, c.want)
			calls := plugin.Decrypt.Calls()
			require.Len(t, calls, i+1)
			assert.ErrorContains(t, calls[i].Err, c.want)
		}
		for i, request := range []*kmsapi.EncryptRequest{{Plaintext: secret}, {Uid: "1"}} {
			_, err := client.Encrypt(t.Context(), request)
			assert.Equal(t, codes.InvalidArgument, status.Code(err))
			calls := plugin.Encrypt.Calls()
			require.Len(t, calls, i+1)
			assert.ErrorContains(t, calls[i].Err, "the request has no uid or nothing to encrypt")
		}
	})
}

func TestDeterministic(t *testing.T) {
	var answers []string
	for _, seed := range []uint64{1, 1, 2} {
		t.Run("", func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, seed)
			synctest.Test(t, func(t *testing.T) {
				l := memnet.Listen()
				serve(t, l, kms.Config{})
				answers = append(answers, string(encrypt(t, dial(t, l)).Ciphertext))
			})
		})
	}
	assert.Equal(t, answers[0], answers[1])
	assert.NotEqual(t, answers[0], answers[2])
}
