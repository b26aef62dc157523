package envtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"snowglobe.test/envtest"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func widgetCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func widgetYAML(t *testing.T) string {
	t.Helper()
	content, err := yaml.Marshal(widgetCRD())
	require.NoError(t, err)
	return string(content)
}

// TestCRDPaths installs a definition from a folder that holds other things too,
// and again by name, which replaces it.
func TestCRDPaths(t *testing.T) {
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "widget.yaml"), "# a comment\n---\n"+widgetYAML(t))
	writeFile(t, filepath.Join(folder, "kustomization.yaml"), "resources: [widget.yaml]\n")
	writeFile(t, filepath.Join(folder, "README.md"), "not a manifest")
	cp := envtest.Start(t, envtest.WithCRDPaths(folder, filepath.Join(folder, "widget.yaml")))
	list, err := dynamic.NewForConfigOrDie(cp.Config()).Resource(widgets).List(t.Context(), metav1.ListOptions{})
	assert.True(t, err == nil && len(list.Items) == 0, "list of widgets: %v, %v", list, err)
}

func TestReadCRDsRefuses(t *testing.T) {
	folder := t.TempDir()
	for name, test := range map[string]struct{ content, want string }{
		"pod.yaml":     {"apiVersion: v1\nkind: Pod\n", `document 1: is a "Pod" of "v1", not a CustomResourceDefinition`},
		"field.yaml":   {widgetYAML(t) + "extra: true\n", "document 1"},
		"second.yaml":  {widgetYAML(t) + "---\nkind: [\n", "document 2"},
		"nothing.yaml": {"", "holds no CustomResourceDefinition"},
	} {
		_, err := envtest.ReadCRDs(writeFile(t, filepath.Join(folder, name), test.content))
		assert.True(t, err != nil && strings.Contains(err.Error(), name) && strings.Contains(err.Error(), test.want), "%s: error %v, want one with the file and %q", name, err, test.want)
	}
	_, err := envtest.ReadCRDs(t.TempDir())
	assert.ErrorContains(t, err, "no CustomResourceDefinition", "an empty folder")
}
