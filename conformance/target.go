package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Target is a cluster as one run of one case sees it. Its assertions fail the
// case: t.Expect, t.Eventually and the rest of gomega.
type Target struct {
	gomega.Gomega
	// Cluster under test.
	Cluster *Cluster
	// Config is of a user who may do everything. It asks for JSON, and is not
	// held back by the client.
	Config *rest.Config
	// Name is a DNS label that no other run of any case has: for what a case
	// makes outside a namespace.
	Name string

	kube      kubernetes.Interface
	crds      apiextensionsclient.Interface
	dynamic   dynamic.Interface
	raw       *rawClient
	namespace string
	cleanups  []func(ctx context.Context) error
}

func newTarget(cluster *Cluster, id string, fail func(message string, callerSkip ...int)) (*Target, error) {
	config := cluster.wrap(cluster.Config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.QPS = -1 // a case waits for the server, not for its own client
	config.WarningHandler = rest.NoWarnings{}
	rest.AddUserAgent(config, "snowglobe-conformance/"+id)
	t := &Target{Gomega: gomega.NewGomega(fail), Cluster: cluster, Config: config, Name: uniqueName(id)}
	t.SetDefaultEventuallyPollingInterval(pollInterval)
	var errs [4]error
	t.kube, errs[0] = kubernetes.NewForConfig(config)
	t.crds, errs[1] = apiextensionsclient.NewForConfig(config)
	t.dynamic, errs[2] = dynamic.NewForConfig(config)
	t.raw, errs[3] = newRawClient(config)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("clients of %s: %w", cluster.Name, err)
	}
	return t, nil
}

// pollInterval is how often a case asks again for what can't be watched.
const pollInterval = 50 * time.Millisecond

// uniqueName is short enough to be the beginning of other names.
func uniqueName(id string) string {
	name := strings.ReplaceAll(strings.ToLower(id), "/", "-")
	return strings.TrimRight(name[:min(len(name), 40)], "-") + "-" + utilrand.String(5)
}

// Cleanup has f called when the case has ended, before what was put in earlier.
// The context it gets outlives the case for a while.
func (t *Target) Cleanup(f func(ctx context.Context) error) { t.cleanups = append(t.cleanups, f) }

// cleanupLimit bounds taking away what one case made.
const cleanupLimit = 30 * time.Second

func (t *Target) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	var errs []error
	for _, f := range slices.Backward(t.cleanups) {
		if err := f(ctx); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Namespace returns a namespace that only this run of the case uses. It is made
// at the first call. A cluster's own controllers may put things into it.
func (t *Target) Namespace(ctx context.Context) string {
	if t.namespace != "" {
		return t.namespace
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.Name}}
	_, err := t.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred(), "create namespace %s", t.Name)
	t.namespace = t.Name
	t.Cleanup(t.emptyNamespace)
	return t.namespace
}

// emptyNamespace takes away what cases put into their namespace. Without the
// namespace controller nobody else does, and the namespace stays Terminating.
func (t *Target) emptyNamespace(ctx context.Context) error {
	all := metav1.ListOptions{}
	err := errors.Join(
		t.kube.CoreV1().ConfigMaps(t.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		t.kube.CoordinationV1().Leases(t.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
	)
	return errors.Join(err, t.kube.CoreV1().Namespaces().Delete(ctx, t.namespace, metav1.DeleteOptions{}))
}

// must fails the case if a step that is not the promise itself fails.
func (t *Target) must(err error, format string, args ...any) {
	t.Expect(err).NotTo(gomega.HaveOccurred(), append([]any{format}, args...)...)
}
