package load

import (
	"context"
	"fmt"
	"net"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"snowglobe.test/fakes/webhook"
)

// crdResource is the resource of definitions.
var crdResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// crdName is the name of the definition of a custom resource.
func (k Kind) crdName() string { return k.resource + "." + k.Group }

// definition defines a custom resource that keeps all fields, in one version, or in two between
// which a webhook converts.
func (k Kind) definition() *apiextensionsv1.CustomResourceDefinition {
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: k.Version, Served: true, Storage: k.stored == "",
		Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
		},
	}
	versions := []apiextensionsv1.CustomResourceDefinitionVersion{version}
	if k.stored != "" {
		version.Name, version.Storage = k.stored, true
		versions = append(versions, version)
	}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(),
			Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: k.crdName()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: k.resource, Kind: k.Kind},
			Versions: versions,
		},
	}
}

// definePause is the pause between two requests that ask whether a custom resource is served, or
// whether its definition is gone.
const definePause = 20 * time.Millisecond

// define makes the definition of the load's custom resource, and waits until it is served.
func (s *apiServer) define(ctx context.Context) error {
	definition := s.kind.definition()
	if s.kind.stored != "" {
		conversion, err := s.convert()
		if err != nil {
			return err
		}
		definition.Spec.Conversion = conversion
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	if err != nil {
		return err
	}
	_, err = s.admin.dynamic.Resource(crdResource).Create(ctx, &unstructured.Unstructured{Object: content},
		metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w; another load may be running there, or delete it", err)
	}
	if err != nil {
		return err
	}
	for _, server := range s.Configs {
		if err := s.waitServed(ctx, server); err != nil {
			return err
		}
	}
	return nil
}

// convert serves the webhook of the custom resource, in the process of the clients.
func (s *apiServer) convert() (*apiextensionsv1.CustomResourceConversion, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if s.converter, err = webhook.ServeConversion(listener); err != nil {
		return nil, err
	}
	s.converter.HandleRest(nil)
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: new(s.converter.ClientConfig("/convert")), ConversionReviewVersions: []string{"v1"},
		},
	}, nil
}

func (s *apiServer) waitServed(ctx context.Context, server *rest.Config) error {
	client, err := Connect(server)
	if err != nil {
		return err
	}
	defer client.Close()
	return wait.PollUntilContextTimeout(ctx, definePause, answerTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := client.dynamic.Resource(s.kind.GVR()).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// undefine deletes the definition, and waits until it is gone, so that another load can define it.
func (s *apiServer) undefine(ctx context.Context) error {
	crds := s.admin.dynamic.Resource(crdResource)
	if err := crds.Delete(ctx, s.kind.crdName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return wait.PollUntilContextCancel(ctx, definePause, true, func(ctx context.Context) (bool, error) {
		_, err := crds.Get(ctx, s.kind.crdName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}
