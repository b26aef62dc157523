package envtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"snowglobe.test/internal/manifests"
)

// crdExtensions are the files of a folder that may hold definitions.
var crdExtensions = []string{".yaml", ".yml", ".json"}

// crdPlaces are the file, and the place in it, of definitions that were read.
type crdPlaces map[*apiextensionsv1.CustomResourceDefinition]string

// describe is how messages call a definition.
func (p crdPlaces) describe(crd *apiextensionsv1.CustomResourceDefinition) string {
	if place := p[crd]; place != "" {
		return fmt.Sprintf("CRD %s of %s", crd.Name, place)
	}
	return "CRD " + crd.Name
}

// loadCRDs reads all definitions before anything starts.
func loadCRDs(cfg *config) ([]*apiextensionsv1.CustomResourceDefinition, crdPlaces, error) {
	crds, places := slices.Clone(cfg.crds), crdPlaces{}
	for _, path := range cfg.crdPaths {
		found, err := places.read(path)
		if err != nil {
			return nil, nil, err
		}
		crds = append(crds, found...)
	}
	return crds, places, nil
}

// resourcesOf returns the resources that definitions bring, as rules name them.
func resourcesOf(crds []*apiextensionsv1.CustomResourceDefinition) []string {
	resources := make([]string, len(crds))
	for i, crd := range crds {
		resources[i] = crd.Spec.Names.Plural + "." + crd.Spec.Group
	}
	return resources
}

// read reads the definitions in a file, or in the YAML and JSON files directly
// in a folder, which may hold other objects; a file that is named must hold a
// definition. Errors name the file and the document.
func (p crdPlaces) read(path string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("CRDs: %w", err)
	}
	if !info.IsDir() {
		return p.readFile(path, true)
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
		found, err := p.readFile(filepath.Join(path, entry.Name()), false)
		if err != nil {
			return nil, err
		}
		crds = append(crds, found...)
	}
	if len(crds) == 0 {
		return nil, fmt.Errorf("CRDs: no CustomResourceDefinition in the %s files of folder %s; those in its folders are not read", strings.Join(crdExtensions, ", "), path)
	}
	return crds, nil
}

// readFile reads the definitions of a file, which may hold other objects. A named one must hold
// a definition.
func (p crdPlaces) readFile(path string, named bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("CRDs: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, object := range manifests.Cut(string(content)) {
		crd, err := decodeCRD([]byte(object.Text))
		if err != nil {
			return nil, fmt.Errorf("CRDs: %s: %s: %w", path, object.Place(), err)
		}
		if crd != nil {
			crds, p[crd] = append(crds, crd), path+": "+object.Place()
		}
	}
	if named && len(crds) == 0 {
		return nil, fmt.Errorf("CRDs: %s holds no CustomResourceDefinition of %s", path, apiextensionsv1.SchemeGroupVersion)
	}
	return crds, nil
}

// decodeCRD returns nil for what is no definition: nothing but comments, other kinds, and patches
// of definitions, which lack their group or kind.
func decodeCRD(document []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	content, strictErr := yaml.YAMLToJSONStrict(document)
	if strictErr != nil { // which matters in a definition only
		var err error
		if content, err = yaml.YAMLToJSON(document); err != nil {
			return nil, err
		}
	}
	var object *struct {
		metav1.TypeMeta
		Spec struct {
			Group string
			Names struct{ Kind string }
		}
	}
	if err := json.Unmarshal(content, &object); err != nil {
		return nil, err
	}
	if object == nil || object.GroupVersionKind() != apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition") ||
		object.Spec.Group == "" || object.Spec.Names.Kind == "" {
		return nil, nil
	}
	if strictErr != nil {
		return nil, strictErr
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(crd); err != nil {
		return nil, err
	}
	return crd, nil
}
