package kms

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"

	"snowglobe.test/fakes/stub"
	"snowglobe.test/internal/conns"
)

// handshakeTimeout is how long a connection may take to begin with gRPC.
const handshakeTimeout = 10 * time.Second

// Config says what a plugin does. Its zero value is a good one.
type Config struct {
	// RecordPlaintexts puts what is encrypted and decrypted into the records of calls.
	RecordPlaintexts bool
}

// Plugin is a KMS v2 plugin. Its tables decide the answers of its three calls and record
// them. An error of a rule that is one of gRPC's is answered as it stands; stub.ErrBreak
// closes the connection; any other has the code Internal.
type Plugin struct {
	Status  *stub.Table[StatusRequest, StatusAnswer]
	Encrypt *stub.Table[EncryptRequest, EncryptAnswer]
	Decrypt *stub.Table[DecryptRequest, DecryptAnswer]

	config Config
	addr   net.Addr
	server *grpc.Server
	conns  conns.Set
	done   chan struct{} // closed when nothing accepts connections anymore
	failed error         // why, if the plugin was not stopped; set before done

	stop    sync.Once
	stopped chan struct{} // closed when nothing is left

	mu      sync.Mutex
	healthz string
	made    int   // keys so far
	keys    []key // newest first
}

// StatusRequest says nothing.
type StatusRequest struct{}

// StatusAnswer is how the plugin is.
type StatusAnswer struct {
	Version string // v2
	Healthz string // ok, or what is wrong
	KeyID   string // of the key that encrypts
}

// EncryptRequest is what to encrypt: the seed of an API server's data encryption keys.
type EncryptRequest struct {
	UID       string
	Bytes     int    // the length of the plaintext
	Plaintext []byte // nil unless Config.RecordPlaintexts
}

// EncryptAnswer is what came out. The API server keeps all of it.
type EncryptAnswer struct {
	Ciphertext  []byte
	KeyID       string
	Annotations map[string][]byte
}

// DecryptRequest is what came out of an earlier Encrypt.
type DecryptRequest struct {
	UID         string
	Ciphertext  []byte
	KeyID       string
	Annotations map[string][]byte
}

// DecryptAnswer is what was encrypted. A rule that answers with a plaintext of its own
// sets it; the plugin itself leaves it nil unless Config.RecordPlaintexts.
type DecryptAnswer struct {
	Bytes     int // the length of the plaintext
	Plaintext []byte
}

// Rules say how some calls are answered.
type (
	StatusRule  = stub.Rule[StatusRequest, StatusAnswer]
	EncryptRule = stub.Rule[EncryptRequest, EncryptAnswer]
	DecryptRule = stub.Rule[DecryptRequest, DecryptAnswer]
)

// Serve serves a plugin with one key, without TLS, as on the Unix sockets that API
// servers dial. The listener is the plugin's from now on.
func Serve(l net.Listener, config Config) *Plugin {
	p := &Plugin{
		config:  config,
		addr:    l.Addr(),
		done:    make(chan struct{}),
		stopped: make(chan struct{}),
		healthz: "ok",
		server:  grpc.NewServer(grpc.Creds(newBreakable()), grpc.ConnectionTimeout(handshakeTimeout)),
	}
	p.Status = stub.NewTable(func(context.Context, StatusRequest) (StatusAnswer, error) { return p.status(), nil })
	p.Encrypt = stub.NewTable(p.encrypt)
	p.Decrypt = stub.NewTable(p.decrypt)
	p.Rotate()
	kmsapi.RegisterKeyManagementServiceServer(p.server, &service{plugin: p})
	go func() {
		defer close(p.done)
		if err := p.server.Serve(p.conns.Keep(l)); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			p.failed = fmt.Errorf("serve a KMS plugin on %s: %w", l.Addr(), err)
		}
	}()
	return p
}

// Stop closes the listener, and returns when the calls that run have been answered. When
// the context ends, it breaks off those that are left, and returns an error. It may be
// called again.
func (p *Plugin) Stop(ctx context.Context) error {
	p.stop.Do(func() {
		go func() {
			defer close(p.stopped)
			p.server.GracefulStop()
		}()
	})
	var err error
	select {
	case <-p.stopped:
	case <-ctx.Done():
		err = fmt.Errorf("stop a KMS plugin: calls that were not answered yet have been broken off: %w", context.Cause(ctx))
		// Not server.Stop, which would wait for a lock that GracefulStop has until the
		// calls have ended: in virtual time they never would.
		p.conns.CloseAll()
		<-p.stopped
	}
	<-p.done
	return errors.Join(err, p.failed)
}

// EncryptionConfiguration is a file for --encryption-provider-config that has the API
// server encrypt resources, such as secrets or widgets.example.com, by the plugin, and
// read what is not encrypted yet. The name is the provider's. An API server dials Unix
// sockets alone: if the plugin listens on something else, the endpoint is made of the
// name, and clients must be led to the listener by other means.
func (p *Plugin) EncryptionConfiguration(name string, timeout time.Duration, resources ...string) ([]byte, error) {
	if len(resources) == 0 {
		return nil, errors.New("configure encryption by a KMS plugin: name a resource to encrypt, such as secrets")
	}
	path := "/@" + name
	if p.addr.Network() == "unix" {
		path = p.addr.String()
		if strings.HasPrefix(path, "@") { // an abstract one
			path = "/" + path
		} else if absolute, err := filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("configure encryption by the KMS plugin on %s: %w", path, err)
		} else {
			path = absolute
		}
	}
	return fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [%s]
  providers:
  - kms:
      apiVersion: v2
      name: %q
      endpoint: %q
      timeout: %s
  - identity: {}
`, strings.Join(resources, ", "), name, "unix://"+path, timeout), nil
}
