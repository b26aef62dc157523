package suite

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Create creates an object by that method of a typed client, or fails the case.
func Create[O metav1.Object](
	ctx context.Context, t *T, create func(context.Context, O, metav1.CreateOptions) (O, error), object O,
) O {
	created, err := create(ctx, object, metav1.CreateOptions{})
	t.Must(err, "create %s %s", kindOf(object), object.GetName())
	return created
}

// Get reads an object by that method of a typed client, or fails the case.
func Get[O metav1.Object](
	ctx context.Context, t *T, get func(context.Context, string, metav1.GetOptions) (O, error), name string,
) O {
	got, err := get(ctx, name, metav1.GetOptions{})
	t.Must(err, "get %s %s", kindOf(got), name)
	return got
}

// Update updates an object by that method of a typed client, or fails the case.
func Update[O metav1.Object](
	ctx context.Context, t *T, update func(context.Context, O, metav1.UpdateOptions) (O, error), object O,
) O {
	updated, err := update(ctx, object, metav1.UpdateOptions{})
	t.Must(err, "update %s %s", kindOf(object), object.GetName())
	return updated
}

// List lists objects by that method of a typed client, or fails the case.
func List[L metav1.ListInterface](
	ctx context.Context, t *T, list func(context.Context, metav1.ListOptions) (L, error), opts metav1.ListOptions,
) L {
	found, err := list(ctx, opts)
	t.Must(err, "list %s with %s", kindOf(found), show(opts))
	return found
}

// ErrorOf is the error of a call whose result does not matter.
func ErrorOf(_ any, err error) error { return err }

// kindOf is the kind of an object of a Go type.
func kindOf(object any) string { return reflect.TypeOf(object).Elem().Name() }

// DryRun has the server do all but store an object.
var DryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// Pod is one with containers of these names.
func Pod(name string, containers ...string) *corev1.Pod {
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, container := range containers {
		object.Spec.Containers = append(object.Spec.Containers,
			corev1.Container{Name: container, Image: "example.com/" + container})
	}
	return object
}

// Service is one with the port 80.
func Service(name string, change ...func(*corev1.ServiceSpec)) *corev1.Service {
	object := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	for _, f := range change {
		f(&object.Spec)
	}
	return object
}

// ClusterIP gives a Service a cluster IP.
func ClusterIP(ip string) func(*corev1.ServiceSpec) {
	return func(spec *corev1.ServiceSpec) { spec.ClusterIP = ip }
}

// TryService creates a Service in the case's namespace, as Service says.
func (t *T) TryService(ctx context.Context, name string, change ...func(*corev1.ServiceSpec)) (*corev1.Service, error) {
	return t.Kube.CoreV1().Services(t.Namespace(ctx)).Create(ctx, Service(name, change...), metav1.CreateOptions{})
}

// MakeService is TryService that must succeed.
func (t *T) MakeService(ctx context.Context, name string, change ...func(*corev1.ServiceSpec)) *corev1.Service {
	return Create(ctx, t, t.Kube.CoreV1().Services(t.Namespace(ctx)).Create, Service(name, change...))
}

// ServerAddresses are the addresses behind the Service default/kubernetes, sorted.
func (t *T) ServerAddresses(ctx context.Context) (addresses []string) {
	list := List(ctx, t, t.Kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List,
		metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			addresses = append(addresses, endpoint.Addresses...)
		}
	}
	slices.Sort(addresses)
	return addresses
}

// Identities are the Leases by which servers tell that they run.
func (t *T) Identities(ctx context.Context) []coordinationv1.Lease {
	return List(ctx, t, t.Kube.CoordinationV1().Leases(metav1.NamespaceSystem).List,
		metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"}).Items
}

// WebhookRule is one for a resource, of webhooks and policies.
func WebhookRule(group, version, resource string,
	operations ...registrationv1.OperationType) registrationv1.RuleWithOperations {
	return registrationv1.RuleWithOperations{
		Operations: operations,
		Rule: registrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version},
			Resources: []string{resource}},
	}
}

// Owners are who owns a field of an object, by its element in managedFields, like "f:color": the
// managers and their operations, sorted.
func Owners(of metav1.Object, field string) []string {
	found := []string{}
	for _, entry := range of.GetManagedFields() {
		if strings.Contains(entry.FieldsV1.GetRawString(), `"`+strings.ReplaceAll(field, `"`, `\"`)+`"`) {
			found = append(found, fmt.Sprint(entry.Manager, " ", entry.Operation))
		}
	}
	slices.Sort(found)
	return found
}
