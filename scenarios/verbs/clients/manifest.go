package clients

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"snowglobe.test/scenarios/script"
)

// ReadObjects reads the objects of a manifest: YAML or JSON documents.
func ReadObjects(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, document := range documentsOf(text) {
		object := &unstructured.Unstructured{}
		if err := script.ReadAnyYAML(document.text, &object.Object); err != nil {
			return nil, document.at(err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetAPIVersion() == "" || object.GetKind() == "" {
			return nil, document.at(errors.New("this is not an object: it lacks an apiVersion or a kind"))
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

// document is one of the documents of a manifest.
type document struct {
	text   string
	before int // lines of the manifest
}

// at is an error of the document at its line in the manifest.
func (d document) at(err error) error {
	line := 1 + len(d.text) - len(strings.TrimLeft(d.text, "\n"))
	if at, ok := errors.AsType[*script.LineError](err); ok {
		line, err = at.Line, at.Err
	}
	return &script.LineError{Line: d.before + line, Err: err}
}

// documentsOf cuts a manifest where a line begins with "---".
func documentsOf(text string) []document {
	documents := []document{{}}
	line := 0
	for part := range strings.Lines(text) {
		line++
		if after, ends := strings.CutPrefix(part, "---"); ends && isComment(after) {
			documents = append(documents, document{before: line})
			continue
		}
		documents[len(documents)-1].text += part
	}
	return documents
}

// isComment reports whether the rest of a line says nothing.
func isComment(rest string) bool {
	rest = strings.TrimSpace(rest)
	return rest == "" || strings.HasPrefix(rest, "#")
}
