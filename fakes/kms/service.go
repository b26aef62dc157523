package kms

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"snowglobe.test/fakes/stub"
)

// maxBytes is how long a key id and a ciphertext may be, in KMS v2.
const maxBytes = 1 << 10

// service is the plugin as gRPC calls it.
type service struct {
	kmsapi.UnimplementedKeyManagementServiceServer
	plugin *Plugin
}

// Status implements kmsapi.KeyManagementServiceServer.
func (s *service) Status(ctx context.Context, _ *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	answer, err := s.plugin.Status.Serve(ctx, StatusRequest{})
	if err != nil {
		return nil, toGRPC(ctx, err)
	}
	return &kmsapi.StatusResponse{Version: answer.Version, Healthz: answer.Healthz, KeyId: answer.KeyID}, nil
}

// Encrypt implements kmsapi.KeyManagementServiceServer.
func (s *service) Encrypt(ctx context.Context, r *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	request := EncryptRequest{UID: r.Uid, Bytes: len(r.Plaintext)}
	if s.plugin.config.RecordPlaintexts {
		request.Plaintext = r.Plaintext
	}
	if r.Uid == "" || len(r.Plaintext) == 0 {
		return nil, reject(s.plugin.Encrypt, request, "the request has no uid or nothing to encrypt")
	}
	answer, err := s.plugin.Encrypt.Serve(context.WithValue(ctx, plaintextKey{}, &r.Plaintext), request)
	if err != nil {
		return nil, toGRPC(ctx, err)
	}
	return &kmsapi.EncryptResponse{Ciphertext: answer.Ciphertext, KeyId: answer.KeyID, Annotations: answer.Annotations}, nil
}

// Decrypt implements kmsapi.KeyManagementServiceServer.
func (s *service) Decrypt(ctx context.Context, r *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	request := DecryptRequest{UID: r.Uid, Ciphertext: r.Ciphertext, KeyID: r.KeyId, Annotations: r.Annotations}
	switch {
	case r.Uid == "":
		return nil, reject(s.plugin.Decrypt, request, "the request has no uid")
	case r.KeyId == "" || len(r.KeyId) > maxBytes:
		return nil, reject(s.plugin.Decrypt, request, fmt.Sprintf("the key id has %d bytes, want 1 to %d", len(r.KeyId), maxBytes))
	case len(r.Ciphertext) == 0 || len(r.Ciphertext) > maxBytes:
		return nil, reject(s.plugin.Decrypt, request, fmt.Sprintf("the ciphertext has %d bytes, want 1 to %d", len(r.Ciphertext), maxBytes))
	}
	var plaintext []byte
	answer, err := s.plugin.Decrypt.Serve(context.WithValue(ctx, plaintextKey{}, &plaintext), request)
	if err != nil {
		return nil, toGRPC(ctx, err)
	}
	if answer.Plaintext != nil {
		plaintext = answer.Plaintext
	}
	return &kmsapi.DecryptResponse{Plaintext: plaintext}, nil
}

// reject records a request that no API server sends.
func reject[Request, Answer any](table *stub.Table[Request, Answer], request Request, why string) error {
	err := status.Error(codes.InvalidArgument, why)
	table.Reject(request, err)
	return err
}

// toGRPC is the error that the client gets.
func toGRPC(ctx context.Context, err error) error {
	if errors.Is(err, stub.ErrBreak) {
		breakConn(ctx)
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if ended := status.FromContextError(err); ended.Code() != codes.Unknown {
		return ended.Err() // as the client finds by itself at the same time
	}
	return status.Error(codes.Internal, err.Error())
}

// breakable are credentials that let a handler reach its connection.
type breakable struct {
	credentials.TransportCredentials
}

func newBreakable() breakable { return breakable{insecure.NewCredentials()} }

// Clone implements credentials.TransportCredentials.
func (b breakable) Clone() credentials.TransportCredentials {
	return breakable{b.TransportCredentials.Clone()}
}

// ServerHandshake implements credentials.TransportCredentials.
func (b breakable) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	wrapped, info, err := b.TransportCredentials.ServerHandshake(conn)
	return wrapped, connInfo{info, conn}, err
}

type connInfo struct {
	credentials.AuthInfo
	conn net.Conn
}

// breakConn closes the connection that a call came on.
func breakConn(ctx context.Context) {
	if p, ok := peer.FromContext(ctx); ok {
		_ = p.AuthInfo.(connInfo).conn.Close() // grpc sees the error
	}
}
