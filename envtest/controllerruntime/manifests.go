package controllerruntime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
)

// readWebhooks adds the admission webhooks of a file, or of the YAML and JSON files
// directly in a folder, which may hold other objects too.
func readWebhooks(path string, to *crenvtest.WebhookInstallOptions) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	if !info.IsDir() {
		return readWebhookFile(path, to)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			if err := readWebhookFile(filepath.Join(path, entry.Name()), to); err != nil {
				return err
			}
		}
	}
	return nil
}

func readWebhookFile(path string, to *crenvtest.WebhookInstallOptions) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for number := 1; ; number++ {
		var document runtime.RawExtension
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = addWebhooks(document.Raw, to)
		}
		if err != nil {
			return fmt.Errorf("webhooks: %s: document %d: %w", path, number, err)
		}
	}
}

// addWebhooks adds a document's webhooks, if it is a configuration of some.
func addWebhooks(document []byte, to *crenvtest.WebhookInstallOptions) error {
	if len(document) == 0 || string(document) == "null" {
		return nil // nothing but comments
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return nil // a custom resource
	}
	if err != nil {
		return err
	}
	switch hooks := object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		to.MutatingWebhooks = append(to.MutatingWebhooks, hooks)
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		to.ValidatingWebhooks = append(to.ValidatingWebhooks, hooks)
	}
	return nil
}
