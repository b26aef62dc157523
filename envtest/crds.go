package envtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"
)

// crdExtensions are the files of a folder that may hold definitions.
var crdExtensions = []string{".yaml", ".yml", ".json"}

// loadCRDs reads all definitions before anything starts.
func loadCRDs(cfg *config) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds := slices.Clone(cfg.crds)
	for _, path := range cfg.crdPaths {
		found, err := readCRDs(path)
		if err != nil {
			return nil, err
		}
		crds = append(crds, found...)
	}
	return crds, nil
}

// resourcesOf returns the resources that definitions bring, as rules name them.
func resourcesOf(crds []*apiextensionsv1.CustomResourceDefinition) []string {
	resources := make([]string, len(crds))
	for i, crd := range crds {
		resources[i] = crd.Spec.Names.Plural + "." + crd.Spec.Group
	}
	return resources
}

// readCRDs reads the definitions in a file, or in the YAML and JSON files directly
// in a folder, which may hold other objects; a file that is named must hold a
// definition. Errors name the file and the document.
func readCRDs(path string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("CRDs: %w", err)
	}
	if !info.IsDir() {
		return readCRDFile(path, true)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("CRDs: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains(crdExtensions, filepath.Ext(entry.Name())) {
			continue
		}
		found, err := readCRDFile(filepath.Join(path, entry.Name()), false)
		if err != nil {
			return nil, err
		}
		crds = append(crds, found...)
	}
	if len(crds) == 0 {
		return nil, fmt.Errorf("CRDs: no CustomResourceDefinition in the %s files of folder %s", strings.Join(crdExtensions, ", "), path)
	}
	return crds, nil
}

func readCRDFile(path string, strict bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("CRDs: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("CRDs: %s: document %d: %w", path, number, err)
		}
		crd, err := decodeCRD(document, strict)
		if err != nil {
			return nil, fmt.Errorf("CRDs: %s: document %d: %w", path, number, err)
		}
		if crd != nil {
			crds = append(crds, crd)
		}
	}
	if strict && len(crds) == 0 {
		return nil, fmt.Errorf("CRDs: %s holds no CustomResourceDefinition", path)
	}
	return crds, nil
}

// decodeCRD returns nil for an empty document and, unless strict, for other kinds.
func decodeCRD(document []byte, strict bool) (*apiextensionsv1.CustomResourceDefinition, error) {
	var object *metav1.TypeMeta
	if err := yaml.Unmarshal(document, &object); err != nil {
		return nil, err
	}
	if object == nil {
		return nil, nil // nothing but comments
	}
	want := apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	if object.GroupVersionKind() != want {
		if strict {
			return nil, fmt.Errorf("is a %q of %q, not a CustomResourceDefinition of %s", object.Kind, object.APIVersion, want.GroupVersion())
		}
		return nil, nil
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(document, crd); err != nil {
		return nil, err
	}
	return crd, nil
}

// InstallCRDs creates or replaces definitions, and waits until each is established
// and its path is served.
func (cp *ControlPlane) InstallCRDs(ctx context.Context, crds ...*apiextensionsv1.CustomResourceDefinition) error {
	if err := cp.installCRDs(ctx, crds); err != nil {
		return fmt.Errorf("install CRDs: %w", err)
	}
	return nil
}

func (cp *ControlPlane) installCRDs(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	if len(crds) == 0 {
		return nil
	}
	client, err := apiextensionsclient.NewForConfig(cp.Config())
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := applyCRD(ctx, client, crd); err != nil {
			return fmt.Errorf("CRD %s: %w", crd.Name, err)
		}
	}
	for _, crd := range crds {
		revision, err := waitEstablished(ctx, client, crd)
		if err != nil {
			return fmt.Errorf("CRD %s: not established: %w", crd.Name, err)
		}
		for _, server := range cp.servers {
			if err := server.waitServed(ctx, crd, revision); err != nil {
				return fmt.Errorf("CRD %s: established, but not served by %s: %w", crd.Name, server.name, err)
			}
		}
	}
	return nil
}

// waitServed waits until the server, if it runs, serves a definition.
func (s *Server) waitServed(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, revision int64) error {
	if !s.current.Load().running() {
		return nil
	}
	client, err := apiextensionsclient.NewForConfig(s.Config())
	if err != nil {
		return err
	}
	if err := s.chain().RestoreServer().CRDs.Wait(ctx, crd.Name, revision); err != nil {
		return err
	}
	return waitServed(ctx, client, crd)
}

func applyCRD(ctx context.Context, client apiextensionsclient.Interface, crd *apiextensionsv1.CustomResourceDefinition) error {
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	_, err := crds.Create(ctx, crd, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		existing, err := crds.Get(ctx, crd.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		replacement := crd.DeepCopy()
		replacement.ResourceVersion = existing.ResourceVersion
		_, err = crds.Update(ctx, replacement, metav1.UpdateOptions{})
		return err
	})
}

// waitEstablished returns a revision of the definition that says it is established.
func waitEstablished(ctx context.Context, client apiextensionsclient.Interface, crd *apiextensionsv1.CustomResourceDefinition) (int64, error) {
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", crd.Name).String()}
	list, err := client.ApiextensionsV1().CustomResourceDefinitions().List(ctx, only)
	if err != nil {
		return 0, err
	}
	if len(list.Items) == 1 && established(&list.Items[0]) {
		return revisionOf(list.Items[0].ResourceVersion), nil
	}
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
		opts.FieldSelector = only.FieldSelector
		return client.ApiextensionsV1().CustomResourceDefinitions().Watch(ctx, opts)
	}}
	last, err := watchtools.Until(ctx, list.ResourceVersion, watcher, func(event watch.Event) (bool, error) {
		found, ok := event.Object.(*apiextensionsv1.CustomResourceDefinition)
		return ok && established(found), nil
	})
	if err != nil {
		return 0, err
	}
	return revisionOf(last.Object.(*apiextensionsv1.CustomResourceDefinition).ResourceVersion), nil
}

func revisionOf(resourceVersion string) int64 {
	n, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// waitServed waits until each served version can be listed and discovered. While its
// storage is being set up, the server answers 429, which the client waits out; discovery
// follows by itself, a moment later, and clients that map kinds to resources ask it first.
func waitServed(ctx context.Context, client apiextensionsclient.Interface, crd *apiextensionsv1.CustomResourceDefinition) error {
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		list := client.ApiextensionsV1().RESTClient().Get().AbsPath("/apis", crd.Spec.Group, version.Name, crd.Spec.Names.Plural).Param("limit", "1")
		if err := list.Do(ctx).Error(); err != nil {
			return fmt.Errorf("version %s: %w", version.Name, err)
		}
		if err := waitDiscovered(ctx, client, crd.Spec.Group+"/"+version.Name, crd.Spec.Names.Plural); err != nil {
			return fmt.Errorf("version %s: %w", version.Name, err)
		}
	}
	return nil
}

// discoveryPause is between two looks at the discovery document.
const discoveryPause = 10 * time.Millisecond

// waitDiscovered waits until a resource is in the discovery document of its group version.
func waitDiscovered(ctx context.Context, client apiextensionsclient.Interface, groupVersion, resource string) error {
	return wait.PollUntilContextCancel(ctx, discoveryPause, true, func(context.Context) (bool, error) {
		found, err := client.Discovery().ServerResourcesForGroupVersion(groupVersion)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }), nil
	})
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
}
