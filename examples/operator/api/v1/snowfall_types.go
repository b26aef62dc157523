// Package v1 has the kinds of snow.example.com/v1.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds.
var GroupVersion = schema.GroupVersion{Group: "snow.example.com", Version: "v1"}

// AddToScheme adds the kinds to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Snowfall{}, &SnowfallList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Snowfall covers a place with flakes: a ConfigMap each.
type Snowfall struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SnowfallSpec   `json:"spec,omitempty"`
	Status SnowfallStatus `json:"status,omitempty"`
}

// SnowfallSpec is what is wanted.
type SnowfallSpec struct {
	// Flakes is how many; the webhook's default is 1, and 100 is the most.
	Flakes int `json:"flakes,omitempty"`
}

// SnowfallStatus is what there is.
type SnowfallStatus struct {
	Fallen int `json:"fallen,omitempty"`
}

// SnowfallList is a list of them.
type SnowfallList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Snowfall `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (s *Snowfall) DeepCopyObject() runtime.Object {
	copied := *s
	s.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// DeepCopyObject implements runtime.Object.
func (l *SnowfallList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = make([]Snowfall, len(l.Items))
	for i := range l.Items {
		copied.Items[i] = *l.Items[i].DeepCopyObject().(*Snowfall)
	}
	return &copied
}
