package configuration

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var rangeCases = []suite.Case{
	{ID: "S3/cluster-ips-come-from-the-range", Level: suite.Core, Needs: suite.Needs{Launch: true},
		Test: clusterIPsComeFromTheRange,
		Source: "k8s.io/kubernetes/pkg/registry/core/service/ipallocator; " +
			"k8s.io/kubernetes/pkg/controlplane/instance.go, APIServerServiceIP",
		Promise: "Cluster IPs come from --service-cluster-ip-range, each once; the first is that of the service " +
			"kubernetes, and a Service that is deleted gives its own back."},
	{ID: "S3/cluster-ip-outside-the-range-is-refused", Level: suite.Core, Failure: true,
		Needs: suite.Needs{Launch: true}, Test: clusterIPOutside,
		Source: "k8s.io/kubernetes/pkg/registry/core/service/storage/alloc.go, allocClusterIP",
		Promise: "A Service that asks for a cluster IP outside the range, or for one that is taken, is 422 for " +
			"spec.clusterIPs, and a headless one has none."},
	{ID: "S3/node-ports-come-from-the-range", Level: suite.Core, Failure: true, Needs: suite.Needs{Launch: true},
		Test:   nodePortsComeFromTheRange,
		Source: "k8s.io/kubernetes/pkg/registry/core/service/portallocator/allocator.go",
		Promise: "Node ports come from --service-node-port-range, each once; one outside of it, and one that is " +
			"taken, is 422 for the port's nodePort."},
	{ID: "S3/advertised-address-is-the-endpoint", Level: suite.Versioned, Needs: suite.Needs{Launch: true},
		Test: advertisedAddress,
		Source: "k8s.io/kubernetes/pkg/controlplane/reconcilers/lease.go; " +
			"k8s.io/apiserver/pkg/server/options/server_run_options.go, AdvertiseAddress",
		Promise: "The endpoint of default/kubernetes is --advertise-address, and discovery gives clients that " +
			"address."},
	{ID: "S3/full-range-is-an-error", Level: suite.Versioned, Failure: true, Needs: suite.Needs{Launch: true},
		Test:   fullRange,
		Source: "k8s.io/kubernetes/pkg/registry/core/service/portallocator/allocator.go, ErrFull",
		Promise: "When all node ports of the range are taken, a Service that wants one is refused with 500, which " +
			"says that the range is full, and is not created; one that is given back is given again."},
	{ID: "S3/cluster-ip-stays", Level: suite.Core, Failure: true, Needs: suite.Needs{Launch: true},
		Test:    clusterIPStays,
		Source:  "k8s.io/kubernetes/pkg/apis/core/validation/validation.go, ValidateServiceUpdate",
		Promise: "The cluster IP of a Service can't be changed, 422, and an update that leaves it out keeps it."},
}

// ranged returns a control plane with small ranges that cases share.
func ranged(ctx context.Context, beside *suite.T) *suite.T {
	_, t := beside.Shared(ctx, "ranges", envtest.WithFlags("--service-cluster-ip-range=10.9.0.0/24",
		"--service-node-port-range=30100-30109", "--advertise-address=192.0.2.77", "--endpoint-reconciler-type=lease"))
	return t
}

// makeService creates a Service until the case ends.
func makeService(ctx context.Context, t *suite.T, name string, spec corev1.ServiceSpec) (*corev1.Service, error) {
	services := t.Kube.CoreV1().Services(t.Namespace(ctx))
	service, err := services.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec},
		metav1.CreateOptions{})
	if err == nil {
	}
	return service, err
}

// ports are one port, with a node port if it is not 0.
func ports(nodePort int32) []corev1.ServicePort {
	return []corev1.ServicePort{{Port: 80, NodePort: nodePort}}
}

func clusterIPsComeFromTheRange(ctx context.Context, beside *suite.T) {
	t := ranged(ctx, beside)
	t.Served(ctx, "/api/v1/namespaces/default/services/kubernetes")
	kubernetes, err := t.Kube.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	t.Must(err, "get Service kubernetes")
	t.Expect(kubernetes.Spec.ClusterIP).To(gomega.Equal("10.9.0.1"))
	seen := map[string]bool{"10.9.0.1": true}
	for _, name := range []string{"a", "b", "c"} {
		service, err := makeService(ctx, t, name, corev1.ServiceSpec{Ports: ports(0)})
		t.Must(err, "create Service %s", name)
		ip := service.Spec.ClusterIP
		t.Expect(ip).To(gomega.MatchRegexp(`^10\.9\.0\.\d+$`))
		t.Expect(seen).NotTo(gomega.HaveKey(ip), "Service %s has the cluster IP of another", name)
		t.Expect(service.Spec.ClusterIPs).To(gomega.Equal([]string{ip}))
		seen[ip] = true
	}
	own, err := makeService(ctx, t, "own", corev1.ServiceSpec{ClusterIP: "10.9.0.200", Ports: ports(0)})
	t.Must(err, "create Service own")
	t.Must(t.Kube.CoreV1().Services(own.Namespace).Delete(ctx, "own", metav1.DeleteOptions{}), "delete Service own")
	t.Eventually(ctx, func() error {
		_, err := makeService(ctx, t, "next", corev1.ServiceSpec{ClusterIP: "10.9.0.200", Ports: ports(0)})
		return err
	}).Should(gomega.Succeed(), "a cluster IP that was given back is not free")
}

func clusterIPOutside(ctx context.Context, beside *suite.T) {
	t := ranged(ctx, beside)
	taken, err := makeService(ctx, t, "taken", corev1.ServiceSpec{Ports: ports(0)})
	t.Must(err, "create Service taken")
	for _, ip := range []string{"10.10.0.1", "10.9.0.0", "10.9.0.255", taken.Spec.ClusterIP} {
		_, err := makeService(ctx, t, "refused", corev1.ServiceSpec{ClusterIP: ip, Ports: ports(0)})
		t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec.clusterIPs"}), "cluster IP %s", ip)
	}
	headless, err := makeService(ctx, t, "headless",
		corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: ports(0)})
	t.Must(err, "create a headless Service")
	t.Expect(headless.Spec.ClusterIPs).To(gomega.Equal([]string{corev1.ClusterIPNone}))
}

func nodePortsComeFromTheRange(ctx context.Context, beside *suite.T) {
	t := ranged(ctx, beside)
	of := func(nodePort int32) corev1.ServiceSpec {
		return corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: ports(nodePort)}
	}
	seen := map[int32]bool{}
	var last int32
	for _, name := range []string{"a", "b", "c"} {
		service, err := makeService(ctx, t, name, of(0))
		t.Must(err, "create Service %s", name)
		last = service.Spec.Ports[0].NodePort
		t.Expect(last).To(gomega.And(gomega.BeNumerically(">=", 30100), gomega.BeNumerically("<=", 30109)))
		t.Expect(seen).NotTo(gomega.HaveKey(last), "Service %s has the node port of another", name)
		seen[last] = true
	}
	for _, port := range []int32{30099, 30110, last} {
		_, err := makeService(ctx, t, "refused", of(port))
		t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec.ports[0].nodePort"}), "node port %d", port)
	}
	got := t.Answered(ctx, "/api/v1/namespaces/"+t.Namespace(ctx)+"/services/a", http.StatusOK)
	t.Expect(string(got.Body)).To(gomega.ContainSubstring(`"type":"NodePort"`))
}

func advertisedAddress(ctx context.Context, beside *suite.T) {
	t := ranged(ctx, beside)
	t.Eventually(ctx, func() []string {
		list, err := t.Kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx,
			metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
		t.Must(err, "list EndpointSlices")
		var addresses []string
		for _, slice := range list.Items {
			for _, endpoint := range slice.Endpoints {
				addresses = append(addresses, endpoint.Addresses...)
			}
		}
		return addresses
	}).Should(gomega.Equal([]string{"192.0.2.77"}))
	var versions metav1.APIVersions
	t.GetJSON(ctx, "/api", &versions)
	t.Expect(versions.ServerAddressByClientCIDRs).
		To(gomega.ConsistOf(gomega.HaveField("ServerAddress", gomega.HavePrefix("192.0.2.77:"))))
}

func fullRange(ctx context.Context, beside *suite.T) {
	t := ranged(ctx, beside)
	spec := corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: ports(0)}
	var err error
	made := 0
	for ; err == nil; made++ {
		_, err = makeService(ctx, t, string(rune('a'+made)), spec)
	}
	t.Expect(made-1).To(gomega.Equal(10), "of ten ports, others were given")
	t.Expect(err).To(suite.BeStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError))
	t.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("range is full")))
	t.Answered(ctx, "/api/v1/namespaces/"+t.Namespace(ctx)+"/services/k", http.StatusNotFound)
	t.Must(t.Kube.CoreV1().Services(t.Namespace(ctx)).Delete(ctx, "a", metav1.DeleteOptions{}), "delete Service a")
	_, err = makeService(ctx, t, "next", spec)
	t.Must(err, "create a Service with a node port that was given back")
}

func clusterIPStays(ctx context.Context, beside *suite.T) {
	t := ranged(ctx, beside)
	made, err := makeService(ctx, t, "one", corev1.ServiceSpec{Ports: ports(0)})
	t.Must(err, "create Service one")
	services := t.Kube.CoreV1().Services(made.Namespace)
	changed := made.DeepCopy()
	changed.Spec.ClusterIP, changed.Spec.ClusterIPs = "10.9.0.250", []string{"10.9.0.250"}
	_, err = services.Update(ctx, changed, metav1.UpdateOptions{})
	t.Expect(t.Causes(err)).To(gomega.ContainElement("spec.clusterIPs[0]"))
	left := made.DeepCopy()
	left.Spec.ClusterIP, left.Spec.ClusterIPs = "", nil
	updated, err := services.Update(ctx, left, metav1.UpdateOptions{})
	t.Must(err, "update Service one without its cluster IP")
	t.Expect(updated.Spec.ClusterIP).To(gomega.Equal(made.Spec.ClusterIP))
}
