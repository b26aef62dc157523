package controllerruntime

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// accidental are fields that differ from run to run.
var accidental = []string{"uid", "resourceVersion", "creationTimestamp", "generation", "observedGeneration", "managedFields"}

// objects describes all objects of kinds as YAML, sorted, without what is accidental, and
// without those of the control plane itself.
func objects(ctx context.Context, c client.Client, lists []client.ObjectList) (string, error) {
	var described []string
	for _, kind := range lists {
		list := kind.DeepCopyObject().(client.ObjectList)
		if err := c.List(ctx, list); err != nil {
			return "", err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return "", err
		}
		for _, item := range items {
			if ofControlPlane(item) {
				continue
			}
			text, err := describe(c, item)
			if err != nil {
				return "", err
			}
			described = append(described, text)
		}
	}
	slices.Sort(described)
	return strings.Join(described, "---\n"), nil
}

// ofControlPlane reports whether an object is in a namespace that is the control plane's.
func ofControlPlane(object runtime.Object) bool {
	accessor, err := meta.Accessor(object)
	return err == nil && strings.HasPrefix(accessor.GetNamespace(), "kube-")
}

func describe(c client.Client, object runtime.Object) (string, error) {
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return "", err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "", err
	}
	content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
	text, err := yaml.Marshal(withoutAccidents(content))
	if err != nil {
		return "", fmt.Errorf("%s: %w", gvk, err)
	}
	return string(text), nil
}

// withoutAccidents leaves fields out, and replaces moments by a word.
func withoutAccidents(value any) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, field := range v {
			if !slices.Contains(accidental, key) {
				kept[key] = withoutAccidents(field)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i := range v {
			kept[i] = withoutAccidents(v[i])
		}
		return kept
	case string:
		if _, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return "a moment"
		}
	}
	return value
}
