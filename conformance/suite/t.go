package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/conformance/ledger"
)

// T is what one run of one case tests a cluster through. Its assertions
// (t.Expect, t.Eventually and the rest of gomega) fail the case.
type T struct {
	gomega.Gomega
	// Cluster under test.
	Cluster *Cluster
	// Config is for an admin, asks for JSON and has no client-side rate limit.
	Config *rest.Config
	// Name is a unique DNS label, for what the case creates outside its namespace.
	Name string

	// Kube, CRDs and Dynamic are clients with Config.
	Kube    kubernetes.Interface
	CRDs    apiextensionsclient.CustomResourceDefinitionInterface
	Dynamic dynamic.Interface

	id        string       // of the case
	page      *ledger.Page // what the case makes; nil if the cluster ends with the case
	borrowed  bool         // the page is that of another T
	fail      func(message string, callerSkip ...int)
	raw       *rawClient
	namespace string
	cleanups  []func(ctx context.Context) error
	watches   []watch.Interface
}

// newT returns a T for a case. What is made by its clients is written on the page, if that is not nil.
func newT(cluster *Cluster, page *ledger.Page, id string, fail func(message string, callerSkip ...int)) (*T, error) {
	config := rest.CopyConfig(cluster.Config)
	if cluster.Wrap != nil {
		config.Wrap(cluster.Wrap)
	}
	if page != nil {
		config.Wrap(page.Wrap)
	}
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.QPS = -1 // no client-side rate limit
	config.WarningHandler = rest.NoWarnings{}
	rest.AddUserAgent(config, "snowglobe-conformance/"+id)
	t := &T{Gomega: gomega.NewGomega(fail), Cluster: cluster, Config: config, Name: uniqueName(id), id: id, page: page,
		fail: fail}
	t.SetDefaultEventuallyPollingInterval(cmp.Or(cluster.PollInterval, pollInterval))
	var errs [4]error
	var definitions *apiextensionsclient.ApiextensionsV1Client
	t.Kube, errs[0] = kubernetes.NewForConfig(config)
	definitions, errs[1] = apiextensionsclient.NewForConfig(config)
	t.Dynamic, errs[2] = dynamic.NewForConfig(config)
	t.raw, errs[3] = newRawClient(config)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("clients of %s: %w", cluster.Name, err)
	}
	t.CRDs = definitions.CustomResourceDefinitions()
	return t, nil
}

// pollInterval is how often a case polls what can't be watched, unless its cluster says otherwise.
const pollInterval = 50 * time.Millisecond

// NamePrefix begins the names of the namespaces that cases create, and of what they create
// outside these.
const NamePrefix = "snowglobe-"

// uniqueName returns a unique name, short enough for a prefix of other names.
func uniqueName(id string) string {
	name := NamePrefix + strings.ReplaceAll(strings.ToLower(id), "/", "-")
	return strings.TrimRight(name[:min(len(name), 40)], "-") + "-" + utilrand.String(5)
}

// Cleanup registers f for the case's end, last first; its context outlives the case.
func (t *T) Cleanup(f func(ctx context.Context) error) { t.cleanups = append(t.cleanups, f) }

// cleanupTimeout bounds the removal of what one case made. To stop a control plane alone may
// take half a minute before it is said to hang.
const cleanupTimeout = 2 * time.Minute

// cleanUp removes what the case made, while all that its clients and webhooks need is still there, and
// then undoes the rest.
func (t *T) cleanUp(ctx context.Context) error {
	t.stopWatches()
	var errs []error
	if t.page != nil && !t.borrowed {
		errs = append(errs, t.page.Remove(ctx))
	}
	for _, f := range slices.Backward(t.cleanups) {
		if err := f(ctx); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (t *T) stopWatches() {
	for _, w := range t.watches {
		w.Stop()
	}
}

// Namespace returns a namespace that only this run of the case uses. The first call
// creates it. A cluster's own controllers may create objects in it.
func (t *T) Namespace(ctx context.Context) string {
	if t.namespace != "" {
		return t.namespace
	}
	Create(ctx, t, t.Kube.CoreV1().Namespaces().Create, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.Name}})
	t.namespace = t.Name
	return t.namespace
}

// Must fails the case if a step that is not part of the promise fails.
func (t *T) Must(err error, format string, args ...any) {
	t.Expect(err).NotTo(gomega.HaveOccurred(), append([]any{format}, args...)...)
}

// As returns a T whose clients impersonate a user. It shares the namespace of t, if t has
// created one by now.
func (t *T) As(user string, groups ...string) *T {
	config := rest.CopyConfig(t.Cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return t.With(config)
}
