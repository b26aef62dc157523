package controllerruntime_test

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

// FlakeV2 is the hub: its arms are a number.
type FlakeV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FlakeSpecV2 `json:"spec,omitempty"`
}

type FlakeSpecV2 struct {
	Arms int `json:"arms,omitempty"`
}

func (*FlakeV2) Hub() {}

func (f *FlakeV2) DeepCopyObject() runtime.Object {
	c := *f
	f.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// FlakeV1 has words for them.
type FlakeV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FlakeSpecV1 `json:"spec,omitempty"`
}

type FlakeSpecV1 struct {
	Shape string `json:"shape,omitempty"`
}

func (f *FlakeV1) DeepCopyObject() runtime.Object {
	c := *f
	f.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

var shapes = map[int]string{0: "", 6: "six", 7: "seven"}

func (f *FlakeV1) ConvertTo(hub conversion.Hub) error {
	to := hub.(*FlakeV2)
	to.ObjectMeta = f.ObjectMeta
	for arms, shape := range shapes {
		if shape == f.Spec.Shape {
			to.Spec.Arms = arms
			return nil
		}
	}
	return fmt.Errorf("no shape is called %q", f.Spec.Shape)
}

func (f *FlakeV1) ConvertFrom(hub conversion.Hub) error {
	from := hub.(*FlakeV2)
	f.ObjectMeta, f.Spec.Shape = from.ObjectMeta, shapes[from.Spec.Arms]
	return nil
}

// flakes is the definition of both, stored as the hub.
func flakes() *apiextensionsv1.CustomResourceDefinition {
	version := func(name, field, of string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{field: {Type: of}},
				}},
			}},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "flakes.snow.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "snow.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: "Flake", ListKind: "FlakeList", Plural: "flakes", Singular: "flake"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", "shape", "string", false), version("v2", "arms", "integer", true)},
		},
	}
}
