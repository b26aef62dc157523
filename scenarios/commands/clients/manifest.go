package clients

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"snowglobe.test/internal/manifests"
	"snowglobe.test/scenarios/script"
)

// ReadObjects reads the objects of a manifest: YAML or JSON documents, and Lists of them.
func ReadObjects(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, document := range manifests.Cut(text) {
		object := &unstructured.Unstructured{}
		if err := script.ReadAnyYAML(document.Text, &object.Object); err != nil {
			return nil, at(document, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetAPIVersion() == "" || object.GetKind() == "" {
			return nil, at(document, errors.New("this is not an object: it lacks an apiVersion or a kind"))
		}
		objects = append(objects, object)
	}
	if len(objects) == 0 {
		return nil, errors.New("no object in the file")
	}
	return objects, nil
}

// CheckObjects checks a manifest.
func CheckObjects(text string) error {
	_, err := ReadObjects(text)
	return err
}

// at is an error of an object at its line in the manifest.
func at(object manifests.Object, err error) error {
	line := 1 + len(object.Text) - len(strings.TrimLeft(object.Text, "\n"))
	if at, ok := errors.AsType[*script.LineError](err); ok {
		line, err = at.Line, at.Err
	}
	return &script.LineError{Line: object.Line - 1 + line, Err: err}
}
