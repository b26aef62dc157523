package envtest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
)

// InstallCRDs creates or replaces definitions, and waits until each is established and every
// server that runs serves it as installed, and tells of it in discovery. A definition may come
// from another cluster: its uid and resourceVersion do not matter.
//
// A MutatingAdmissionPolicy knows the types of a new resource only when upstream looks for
// schemas again, which it does every five seconds. InstallCRDs does not wait for that.
func (cp *ControlPlane) InstallCRDs(ctx context.Context, crds ...*apiextensionsv1.CustomResourceDefinition) error {
	if err := cp.installCRDs(ctx, crds, nil); err != nil {
		return fmt.Errorf("install CRDs: %w", err)
	}
	return nil
}

func (cp *ControlPlane) installCRDs(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition, places crdPlaces) error {
	if len(crds) == 0 {
		return nil
	}
	client, err := definitions(cp.Config())
	if err != nil {
		return err
	}
	for i, crd := range crds {
		if err := applyCRD(ctx, client, crd); err != nil {
			return fmt.Errorf("number %d of %d: %s: %w", i+1, len(crds), places.describe(crd), err)
		}
	}
	installed := make([]*apiextensionsv1.CustomResourceDefinition, len(crds))
	for i, crd := range crds {
		if installed[i], err = waitEstablished(ctx, client, crd.Name); err != nil {
			return fmt.Errorf("number %d of %d: %s: not established: %w", i+1, len(crds), places.describe(crd), err)
		}
	}
	for _, server := range cp.servers {
		if err := server.waitServed(ctx, installed); err != nil {
			return fmt.Errorf("established, but not served by %s: %w", server.name, err)
		}
	}
	return nil
}

// WaitServed waits until the server, if it runs, serves custom resources by established
// definitions of at least their resourceVersion. For a moment after a write, it serves them as
// they were before. InstallCRDs waits for that by itself.
func (s *Server) WaitServed(ctx context.Context, crds ...*apiextensionsv1.CustomResourceDefinition) error {
	if !s.current.Load().running() {
		return nil
	}
	for _, crd := range crds {
		if err := s.chain().RestoreServer().CRDs.Wait(ctx, crd.Name, revisionOf(crd.ResourceVersion)); err != nil {
			return err
		}
	}
	return nil
}

// definitions returns a client for definitions. What the server warns of, like a version that is
// deprecated, is for who uses it.
func definitions(config *rest.Config) (*apiextensionsclient.Clientset, error) {
	config.WarningHandler = rest.NoWarnings{}
	return apiextensionsclient.NewForConfig(config)
}

// waitServed is WaitServed, and until discovery tells of the definitions too.
func (s *Server) waitServed(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	if !s.current.Load().running() {
		return nil
	}
	client, err := definitions(s.Config())
	if err != nil {
		return err
	}
	if err := s.WaitServed(ctx, crds...); err != nil {
		return err
	}
	return waitServed(ctx, client, crds)
}

func applyCRD(ctx context.Context, client *apiextensionsclient.Clientset, crd *apiextensionsv1.CustomResourceDefinition) error {
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	wanted := crd.DeepCopy()
	wanted.UID, wanted.ResourceVersion, wanted.ManagedFields = "", "", nil
	_, err := crds.Create(ctx, wanted, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		existing, err := crds.Get(ctx, crd.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		wanted.ResourceVersion = existing.ResourceVersion
		_, err = crds.Update(ctx, wanted, metav1.UpdateOptions{})
		return err
	})
}

// waitEstablished returns the definition when it is established under the names that it has now.
func waitEstablished(ctx context.Context, client *apiextensionsclient.Clientset, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	list, err := client.ApiextensionsV1().CustomResourceDefinitions().List(ctx, only)
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 1 && established(&list.Items[0]) && namesDecided(&list.Items[0]) {
		return &list.Items[0], nil
	}
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
		opts.FieldSelector = only.FieldSelector
		return client.ApiextensionsV1().CustomResourceDefinitions().Watch(ctx, opts)
	}}
	last, err := watchtools.Until(ctx, list.ResourceVersion, watcher, func(event watch.Event) (bool, error) {
		found, ok := event.Object.(*apiextensionsv1.CustomResourceDefinition)
		return ok && established(found) && namesDecided(found), nil
	})
	if err != nil {
		return nil, err
	}
	return last.Object.(*apiextensionsv1.CustomResourceDefinition), nil
}

func revisionOf(resourceVersion string) int64 {
	n, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
}

// namesDecided reports whether the server has accepted or refused the names of a definition.
func namesDecided(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return apiequality.Semantic.DeepEqual(crd.Spec.Names, crd.Status.AcceptedNames) || !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted)
}

// waitServed waits until each version can be listed, if it is served, and discovery tells of
// definitions as they are. While its storage is being set up, the server answers 429, which the
// client waits out.
func waitServed(ctx context.Context, client *apiextensionsclient.Clientset, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}
			list := client.ApiextensionsV1().RESTClient().Get().AbsPath("/apis", crd.Spec.Group, version.Name, crd.Spec.Names.Plural).Param("limit", "1")
			if err := list.Do(ctx).Error(); err != nil {
				return fmt.Errorf("CRD %s: version %s: %w", crd.Name, version.Name, err)
			}
		}
	}
	if err := waitDiscovered(ctx, client, crds); err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	return nil
}

// discoveryPause is between two looks at discovery.
const discoveryPause = 10 * time.Millisecond

// waitDiscovered waits until discovery tells of all definitions. It follows by itself, a moment
// later, and clients that map kinds to resources ask it first: most of them its one document of
// all groups, which upstream changes after those of a group and of its versions.
func waitDiscovered(ctx context.Context, client *apiextensionsclient.Clientset, crds []*apiextensionsv1.CustomResourceDefinition) error {
	return wait.PollUntilContextCancel(ctx, discoveryPause, true, func(ctx context.Context) (bool, error) {
		_, found, _, err := client.DiscoveryClient.GroupsAndMaybeResourcesWithContext(ctx)
		if err != nil {
			return false, err
		}
		for _, crd := range crds {
			for _, version := range crd.Spec.Versions {
				if !isDiscovered(found[schema.GroupVersion{Group: crd.Spec.Group, Version: version.Name}], crd, &version) {
					return false, nil
				}
			}
		}
		return true, nil
	})
}

// isDiscovered reports whether what discovery tells of a group version, nil if nothing, is what
// the definition has.
func isDiscovered(found *metav1.APIResourceList, crd *apiextensionsv1.CustomResourceDefinition, version *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	told := map[string]metav1.APIResource{}
	if found != nil {
		for _, resource := range found.APIResources {
			told[resource.Name] = resource
		}
	}
	names := crd.Status.AcceptedNames
	resource, served := told[names.Plural]
	if !version.Served || !served {
		return version.Served == served
	}
	_, status := told[names.Plural+"/status"]
	_, scale := told[names.Plural+"/scale"]
	has := version.Subresources
	if has == nil {
		has = &apiextensionsv1.CustomResourceSubresources{}
	}
	return status == (has.Status != nil) && scale == (has.Scale != nil) &&
		resource.Kind == names.Kind && resource.SingularName == names.Singular &&
		resource.Namespaced == (crd.Spec.Scope == apiextensionsv1.NamespaceScoped) &&
		slices.Equal(resource.ShortNames, names.ShortNames) && slices.Equal(resource.Categories, names.Categories)
}
