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

var rangeCases = suite.Launching([]suite.Case{
	{ID: "S3/cluster-ips-come-from-the-range", Level: suite.Core, Test: clusterIPsComeFromTheRange,
		Source: "k8s.io/kubernetes/pkg/registry/core/service/ipallocator; " +
			"k8s.io/kubernetes/pkg/controlplane/instance.go, APIServerServiceIP",
		Promise: "Cluster IPs come from --service-cluster-ip-range, each once; the first is that of the service " +
			"kubernetes, and a Service that is deleted gives its own back."},
	{ID: "S3/cluster-ip-outside-the-range-is-refused", Level: suite.Core, Failure: true, Test: clusterIPOutside,
		Source: "k8s.io/kubernetes/pkg/registry/core/service/storage/alloc.go, allocClusterIP",
		Promise: "A Service that asks for a cluster IP outside the range, or for one that is taken, is 422 for " +
			"spec.clusterIPs, and a headless one has none."},
	{ID: "S3/node-ports-come-from-the-range", Level: suite.Core, Failure: true, Test: nodePortsComeFromTheRange,
		Source: "k8s.io/kubernetes/pkg/registry/core/service/portallocator/allocator.go",
		Promise: "Node ports come from --service-node-port-range, each once; one outside of it, and one that is " +
			"taken, is 422 for the port's nodePort."},
	{ID: "S3/advertised-address-is-the-endpoint", Test: advertisedAddress,
		Source: "k8s.io/kubernetes/pkg/controlplane/reconcilers/lease.go; " +
			"k8s.io/apiserver/pkg/server/options/server_run_options.go, AdvertiseAddress",
		Promise: "The endpoint of default/kubernetes is --advertise-address, and discovery gives clients that " +
			"address."},
	{ID: "S3/full-range-is-an-error", Failure: true, Test: fullRange,
		Source: "k8s.io/kubernetes/pkg/registry/core/service/portallocator/allocator.go, ErrFull",
		Promise: "When all node ports of the range are taken, a Service that wants one is refused with 500, which " +
			"says that the range is full, and is not created; one that is given back is given again."},
	{ID: "S3/cluster-ip-stays", Level: suite.Core, Failure: true, Test: clusterIPStays,
		Source:  "k8s.io/kubernetes/pkg/apis/core/validation/validation.go, ValidateServiceUpdate",
		Promise: "The cluster IP of a Service can't be changed, 422, and an update that leaves it out keeps it."},
})

// ranges are small ones.
func ranges() envtest.Option {
	return envtest.WithFlags("--service-cluster-ip-range=10.9.0.0/24", "--service-node-port-range=30100-30109",
		"--advertise-address=192.0.2.77", "--endpoint-reconciler-type=lease")
}

// ranged returns a control plane with small ranges that cases share.
func ranged(ctx context.Context, beside *suite.T) *suite.T {
	_, t := beside.Shared(ctx, "ranges", ranges())
	return t
}

func clusterIPsComeFromTheRange(ctx context.Context, beside *suite.T) {
	t := ranged(ctx, beside)
	t.Served(ctx, "/api/v1/namespaces/default/services/kubernetes")
	kubernetes := suite.Get(ctx, t, t.Kube.CoreV1().Services(metav1.NamespaceDefault).Get, "kubernetes")
	t.Expect(kubernetes.Spec.ClusterIP).To(gomega.Equal("10.9.0.1"))
	seen := map[string]bool{"10.9.0.1": true}
	for _, name := range []string{"a", "b", "c"} {
		service := t.MakeService(ctx, name)
		ip := service.Spec.ClusterIP
		t.Expect(ip).To(gomega.MatchRegexp(`^10\.9\.0\.\d+$`))
		t.Expect(seen).NotTo(gomega.HaveKey(ip), "Service %s has the cluster IP of another", name)
		t.Expect(service.Spec.ClusterIPs).To(gomega.Equal([]string{ip}))
		seen[ip] = true
	}
	// It is among the first 16, which no Service gets that asks for none, as other cases' do meanwhile.
	own := t.MakeService(ctx, "own", suite.ClusterIP("10.9.0.10"))
	t.Must(t.Kube.CoreV1().Services(own.Namespace).Delete(ctx, "own", metav1.DeleteOptions{}), "delete Service own")
	t.Eventually(ctx, func() error { return suite.ErrorOf(t.TryService(ctx, "next", suite.ClusterIP("10.9.0.10"))) }).
		Should(gomega.Succeed(), "a cluster IP that was given back is not free")
}

func clusterIPOutside(ctx context.Context, beside *suite.T) {
	t := ranged(ctx, beside)
	taken := t.MakeService(ctx, "taken")
	for _, ip := range []string{"10.10.0.1", "10.9.0.0", "10.9.0.255", taken.Spec.ClusterIP} {
		_, err := t.TryService(ctx, "refused", suite.ClusterIP(ip))
		t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec.clusterIPs"}), "cluster IP %s", ip)
	}
	headless := t.MakeService(ctx, "headless", suite.ClusterIP(corev1.ClusterIPNone))
	t.Expect(headless.Spec.ClusterIPs).To(gomega.Equal([]string{corev1.ClusterIPNone}))
}

// nodePort gives a Service a node port, any if it is 0.
func nodePort(port int32) func(*corev1.ServiceSpec) {
	return func(spec *corev1.ServiceSpec) {
		spec.Type, spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, port
	}
}

func nodePortsComeFromTheRange(ctx context.Context, beside *suite.T) {
	t := ranged(ctx, beside)
	seen := map[int32]bool{}
	var last int32
	for _, name := range []string{"a", "b", "c"} {
		last = t.MakeService(ctx, name, nodePort(0)).Spec.Ports[0].NodePort
		t.Expect(last).To(gomega.And(gomega.BeNumerically(">=", 30100), gomega.BeNumerically("<=", 30109)))
		t.Expect(seen).NotTo(gomega.HaveKey(last), "Service %s has the node port of another", name)
		seen[last] = true
	}
	for _, port := range []int32{30099, 30110, last} {
		_, err := t.TryService(ctx, "refused", nodePort(port))
		t.Expect(t.Causes(err)).To(gomega.Equal([]string{"spec.ports[0].nodePort"}), "node port %d", port)
	}
	got := t.Answered(ctx, "/api/v1/namespaces/"+t.Namespace(ctx)+"/services/a", http.StatusOK)
	t.Expect(string(got.Body)).To(gomega.ContainSubstring(`"type":"NodePort"`))
}

func advertisedAddress(ctx context.Context, beside *suite.T) {
	t := ranged(ctx, beside)
	t.Eventually(ctx, t.ServerAddresses).Should(gomega.Equal([]string{"192.0.2.77"}))
	versions := suite.GetJSON[metav1.APIVersions](ctx, t, "/api")
	t.Expect(versions.ServerAddressByClientCIDRs).
		To(gomega.ConsistOf(gomega.HaveField("ServerAddress", gomega.HavePrefix("192.0.2.77:"))))
}

func fullRange(ctx context.Context, beside *suite.T) {
	_, t := beside.Launch(ctx, ranges()) // alone, since it takes them all
	var err error
	made := 0
	for ; err == nil; made++ {
		_, err = t.TryService(ctx, string(rune('a'+made)), nodePort(0))
	}
	t.Expect(made-1).To(gomega.Equal(10), "of ten ports, others were given")
	t.Expect(err).To(suite.BeStatus(suite.InternalError))
	t.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("range is full")))
	t.Answered(ctx, "/api/v1/namespaces/"+t.Namespace(ctx)+"/services/k", http.StatusNotFound)
	t.Must(t.Kube.CoreV1().Services(t.Namespace(ctx)).Delete(ctx, "a", metav1.DeleteOptions{}), "delete Service a")
	t.MakeService(ctx, "next", nodePort(0)) // with the node port that was given back
}

func clusterIPStays(ctx context.Context, beside *suite.T) {
	t := ranged(ctx, beside)
	made := t.MakeService(ctx, "one")
	services := t.Kube.CoreV1().Services(made.Namespace)
	changed := made.DeepCopy()
	changed.Spec.ClusterIP, changed.Spec.ClusterIPs = "10.9.0.250", []string{"10.9.0.250"}
	_, err := services.Update(ctx, changed, metav1.UpdateOptions{})
	t.Expect(t.Causes(err)).To(gomega.ContainElement("spec.clusterIPs[0]"))
	left := made.DeepCopy()
	left.Spec.ClusterIP, left.Spec.ClusterIPs = "", nil
	updated := suite.Update(ctx, t, services.Update, left)
	t.Expect(updated.Spec.ClusterIP).To(gomega.Equal(made.Spec.ClusterIP))
}
