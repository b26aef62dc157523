package envtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
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
