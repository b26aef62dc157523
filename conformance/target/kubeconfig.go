package target

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/ledger"
	"snowglobe.test/conformance/suite"
)

// Kubeconfig is a source that finds a cluster by a kubeconfig file.
type Kubeconfig struct {
	// Path of the file; its current context is used.
	Path string
	// Release is what the cluster must report; empty if unknown.
	Release string
}

// String implements engine.Source.
func (k Kubeconfig) String() string { return "kubeconfig " + k.Path }

// Lasting is a cluster that outlives the run, so that what cases make there is removed.
type Lasting struct {
	*suite.Cluster
	// Alive says why further cases can't be judged; nil if they can.
	Alive func(ctx context.Context) error
}

// Open implements engine.Source. It asks the cluster once, for ten seconds at most.
func (k Kubeconfig) Open(ctx context.Context) (engine.Target[*suite.T], error) {
	config, err := clientcmd.BuildConfigFromFlags("", k.Path)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", k.Path, err)
	}
	alive := func(ctx context.Context) error { return k.probe(ctx, config) }
	if err := alive(ctx); err != nil {
		return nil, err
	}
	book, err := ledger.Lasting(config)
	if err != nil {
		return nil, err
	}
	known := &suite.Cluster{Name: config.Host, Config: config, Release: k.Release, Ledger: book}
	Learn(ctx, known)
	return Lasting{known, alive}, nil
}

// Check implements engine.Target.
func (l Lasting) Check(ctx context.Context) error { return l.Alive(ctx) }

// Notice implements engine.Target: it says what the cases make.
func (l Lasting) Notice(cases []engine.Info) string { return notice(l.Cluster, cases) }

// Close implements engine.Target: it waits until what cases made is gone.
func (l Lasting) Close(ctx context.Context) error {
	left := l.Ledger.Close(context.WithoutCancel(ctx))
	transport, err := rest.TransportFor(l.Config)
	if err == nil {
		utilnet.CloseIdleConnectionsFor(transport)
	}
	return errors.Join(left, err)
}

// probeTimeout bounds the question whether a cluster can be tested at all.
const probeTimeout = 10 * time.Second

// probe says why cases can't run on the cluster, nil if they can. It creates a namespace, with which
// nearly all of them begin, as a dry run.
func (k Kubeconfig) probe(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", k.Path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "snowglobe-conformance-"}}
	_, err = client.CoreV1().Namespaces().Create(ctx, namespace,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return nil
	}
	advice := k.advice(err)
	var request *url.Error // whose text is mostly the address
	if errors.As(err, &request) {
		err = request.Err
	}
	const failed = "the cluster at %s can't be tested: creating a namespace as a dry run, within %s, failed: %w; %s"
	return fmt.Errorf(failed, config.Host, probeTimeout, err, advice)
}

// advice is what to do about an error of the probe.
func (k Kubeconfig) advice(err error) string {
	var unverified *tls.CertificateVerificationError
	var network net.Error
	switch {
	case apierrors.IsUnauthorized(err):
		return "are the credentials in " + k.Path + " for this cluster, and not expired?"
	case apierrors.IsForbidden(err):
		return "use a user with all permissions, such as one with the role cluster-admin"
	case errors.As(err, &unverified):
		return "is the certificate-authority in " + k.Path + " that of this server?"
	case errors.As(err, &network):
		return "is an API server running there, and reachable from here?"
	}
	return "is a healthy API server there?"
}
