package conformance

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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// probeTimeout bounds the question whether a cluster can be tested at all.
const probeTimeout = 10 * time.Second

// probe says why cases can't run on the cluster, nil if they can: what nearly all of them
// begin with is tried, without a trace of it.
func (k Kubeconfig) probe(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", k.Path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "snowglobe-conformance-"}}
	_, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return nil
	}
	advice := k.advice(err)
	var request *url.Error // whose text is mostly the address
	if errors.As(err, &request) {
		err = request.Err
	}
	return fmt.Errorf("the cluster at %s can't be tested: creating a namespace as a dry run, within %s, failed: %w; %s", config.Host, probeTimeout, err, advice)
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
