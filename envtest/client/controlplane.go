package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"snowglobe.test/envtest/client/internal/session"
)

// ControlPlane is a control plane in another process. Its methods may be called from
// any goroutine.
type ControlPlane struct {
	calls   *rpc.Client
	started session.Started

	stopOnce sync.Once
	stopErr  error
}

// Start gets a control plane for a test and gives it back when the test ends. It fails
// the test if it can't get one, if the API server crashes, or if a rule never fires. A
// failed test shows the warnings and errors in the server's log.
func Start(t testing.TB, opts ...Option) *ControlPlane {
	t.Helper()
	cp, err := launch(t.Context(), t.Name(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if t.Failed() {
			if problems, err := cp.problems(ctx); err != nil {
				t.Logf("there is no log of the API server: %v", err)
			} else {
				t.Logf("log of the API server:\n%s", problems)
			}
		}
		if err := cp.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return cp
}

// Launch gets a control plane without a test; the caller stops it. The context bounds
// only the start, which may include building and starting the server.
func Launch(ctx context.Context, opts ...Option) (*ControlPlane, error) {
	return launch(ctx, "", opts)
}

func launch(ctx context.Context, test string, opts []Option) (*ControlPlane, error) {
	cp, err := findAndStart(ctx, test, opts)
	var said rpc.ServerError // a server's error begins with "start control plane" already
	if err != nil && !errors.As(err, &said) {
		err = fmt.Errorf("start control plane: %w", err)
	}
	return cp, err
}

func findAndStart(ctx context.Context, test string, opts []Option) (*ControlPlane, error) {
	if inBubble() {
		return nil, errors.New("another process has no part in virtual time; use envtest.Simulate, which links the API server")
	}
	options, err := newConfig(nameOf(test), opts)
	if err != nil {
		return nil, err
	}
	cp, err := connect(ctx, options)
	if gone(err) {
		// The server ended because no client had come for long. This starts the next one.
		cp, err = connect(ctx, options)
	}
	return cp, err
}

// inBubble reports whether this goroutine is in a bubble of testing/synctest.
func inBubble() bool {
	var stack [128]byte // whose first line says so
	header, _, _ := bytes.Cut(stack[:runtime.Stack(stack[:], false)], []byte("\n"))
	return bytes.Contains(header, []byte("synctest bubble"))
}

// nameOf is what people call a test: the folder of its package, where go test runs it, and its
// name.
func nameOf(test string) string {
	folder, err := os.Getwd()
	if err != nil {
		return test
	}
	return strings.TrimSuffix(filepath.Base(folder)+" "+test, " ")
}

func connect(ctx context.Context, options *session.Options) (*ControlPlane, error) {
	calls, err := find(ctx)
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{calls: calls}
	if err := cp.call(ctx, session.Start, options, &cp.started); err != nil {
		return nil, errors.Join(err, calls.Close())
	}
	return cp, nil
}

// call calls a method. If the context ends first, it closes the connection, which gives up the
// control plane.
func (cp *ControlPlane) call(ctx context.Context, method string, args, reply any) error {
	call := cp.calls.Go(method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		return call.Error
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), cp.calls.Close())
	}
}

// await calls a method that may take long. If the context ends first, the answer is not waited
// for, and the control plane stays.
func (cp *ControlPlane) await(ctx context.Context, method string, args, reply any) error {
	call := cp.calls.Go(method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		return call.Error
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Release returns the Kubernetes release, such as v1.37.1.
func (cp *ControlPlane) Release() string { return cp.started.Release }

// Config returns a cluster admin's configuration, without a rate limit.
func (cp *ControlPlane) Config() *rest.Config { return restConfig(&cp.started.Admin) }

// AddUser returns a configuration that authenticates a user in groups (and in
// system:authenticated) with a client certificate. RBAC decides what the user may do.
func (cp *ControlPlane) AddUser(ctx context.Context, name string, groups ...string) (*rest.Config, error) {
	var made session.Credentials
	if err := cp.call(ctx, session.AddUser, session.User{Name: name, Groups: groups}, &made); err != nil {
		return nil, fmt.Errorf("add user %q: %w", name, err)
	}
	return restConfig(&made), nil
}

func restConfig(of *session.Credentials) *rest.Config {
	return &rest.Config{
		Host: of.Host, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: of.Authority, CertData: of.Certificate, KeyData: of.Key},
	}
}

// Kubeconfig returns a kubeconfig for kubectl and other programs, with Config's user.
func (cp *ControlPlane) Kubeconfig() ([]byte, error) {
	const name = "snowglobe"
	admin, config := &cp.started.Admin, clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.Authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: admin.Certificate, ClientKeyData: admin.Key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}

// Log returns the log of the API server, or only its end if it is long. An earlier test
// may have used the same server.
func (cp *ControlPlane) Log(ctx context.Context) (string, error) {
	var log string
	err := cp.call(ctx, session.Log, session.None{}, &log)
	return log, err
}

func (cp *ControlPlane) problems(ctx context.Context) (string, error) {
	var problems string
	err := cp.call(ctx, session.Problems, session.None{}, &problems)
	return problems, err
}

// Stop gives the control plane back. Its credentials may keep working while another test
// has it, so no client should be left. An error says that the API server has crashed, or
// that a rule never fired. Later calls return the same as the first.
func (cp *ControlPlane) Stop(ctx context.Context) error {
	cp.stopOnce.Do(func() {
		cp.stopErr = cp.call(ctx, session.Stop, session.None{}, &session.None{})
		_ = cp.calls.Close()
	})
	return cp.stopErr
}
