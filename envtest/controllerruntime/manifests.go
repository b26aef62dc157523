package controllerruntime

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"snowglobe.test/internal/manifests"
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
	for _, object := range manifests.Cut(string(content)) {
		if err := addWebhooks([]byte(object.Text), to); err != nil {
			return fmt.Errorf("webhooks: %s: %s: %w", path, object.Place(), err)
		}
	}
	return nil
}

// addWebhooks adds a document's webhooks, if it is a configuration of some.
func addWebhooks(document []byte, to *crenvtest.WebhookInstallOptions) error {
	var object metav1.TypeMeta
	if err := yaml.Unmarshal(document, &object); err != nil {
		return err
	}
	if object.GroupVersionKind().Group != admissionregistrationv1.GroupName {
		return nil
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
	if err != nil {
		return err
	}
	switch hooks := decoded.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		to.MutatingWebhooks = append(to.MutatingWebhooks, hooks)
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		to.ValidatingWebhooks = append(to.ValidatingWebhooks, hooks)
	}
	return nil
}
