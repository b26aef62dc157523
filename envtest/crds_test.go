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

// gadgetYAML is another definition.
func gadgetYAML(t *testing.T) string {
	t.Helper()
	return strings.NewReplacer("widget", "gadget", "Widget", "Gadget").Replace(widgetYAML(t))
}

// TestCRDPaths installs definitions from a folder that holds other things too, and again by name,
// which replaces them.
func TestCRDPaths(t *testing.T) {
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "widget.yaml"), "# a comment\n---\n"+widgetYAML(t))
	writeFile(t, filepath.Join(folder, "kustomization.yaml"), "resources: [widget.yaml]\n")
	writeFile(t, filepath.Join(folder, "README.md"), "not a manifest")
	cp := envtest.Start(t, envtest.WithCRDPaths(folder, filepath.Join(folder, "widget.yaml")))
	list, err := dynamic.NewForConfigOrDie(cp.Config()).Resource(widgets).List(t.Context(), metav1.ListOptions{})
	assert.True(t, err == nil && len(list.Items) == 0, "list of widgets: %v, %v", list, err)
}

// TestReadCRDs finds definitions in files as people keep them.
func TestReadCRDs(t *testing.T) {
	asJSON := func(text string) string {
		converted, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		return string(converted)
	}
	widget, gadget := widgetYAML(t), gadgetYAML(t)
	list := `{"apiVersion": "v1", "kind": "List", "items": [` + asJSON(widget) + "," + asJSON(gadget) + "]}"
	patch := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec: {conversion: {strategy: None}}\n"
	for name, content := range map[string]string{
		"two.json":    asJSON(widget) + "\n" + asJSON(gadget),
		"list.json":   list,
		"list.yaml":   list,
		"bundle.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n---\n" + widget + "---\n" + patch + "---\n" + gadget,
	} {
		crds, err := envtest.ReadCRDs(writeFile(t, filepath.Join(t.TempDir(), name), content))
		require.NoError(t, err, name)
		require.Len(t, crds, 2, name)
		assert.Equal(t, []string{"widgets.example.com", "gadgets.example.com"}, []string{crds[0].Name, crds[1].Name}, name)
	}
}

// TestRefusedCRD names the file of a definition that the server refuses.
func TestRefusedCRD(t *testing.T) {
	file := writeFile(t, filepath.Join(t.TempDir(), "bad.yaml"), widgetYAML(t)+"---\n"+strings.Replace(gadgetYAML(t), "name: gadgets.example.com", "name: gadgets", 1))
	_, err := envtest.Launch(t.Context(), envtest.WithCRDPaths(file))
	assert.ErrorContains(t, err, "CRD gadgets of "+file+": document 2: ")
}

func TestReadCRDsRefuses(t *testing.T) {
	folder := t.TempDir()
	for name, test := range map[string]struct{ content, want string }{
		"pod.yaml":     {"apiVersion: v1\nkind: Pod\n", "holds no CustomResourceDefinition of apiextensions.k8s.io/v1"},
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
