package startup

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

const repairSource = "KEP-1880; k8s.io/kubernetes/pkg/registry/core/service/ipallocator/controller/repairip.go, "

var repairCases = suite.Launching([]suite.Case{
	{ID: "S13/lost-address-is-made-anew", Waits: true, Failure: true, Test: lostAddressIsMadeAnew,
		Source: repairSource + "syncService",
		Promise: "An IPAddress of a Service, of either family, that is lost, has lost its labels, or refers to " +
			"something else is made anew for the Service when the server looks at it again, which an Event tells."},
	{ID: "S13/stray-address-is-removed", Failure: true, Test: strayAddressIsRemoved,
		Source: repairSource + "syncIPAddress",
		Promise: "An IPAddress that the allocator manages but that refers to no Service, or to one with another " +
			"cluster IP, is removed, which an Event tells; one that somebody else manages stays."},
	{ID: "S13/cluster-ip-without-a-range-is-told", Failure: true, Test: clusterIPWithoutARange,
		Source: repairSource + "isIPOutOfRange",
		Promise: "Cluster IPs are also given from other ServiceCIDRs that are ready; when one is gone, Events of the " +
			"Services with cluster IPs of it say so, and of no others."},
	{ID: "S13/default-range-is-ready", Waits: true, Failure: true, Test: defaultRangeIsReady,
		Source: "KEP-1880; " +
			"k8s.io/kubernetes/pkg/controlplane/controller/defaultservicecidr/default_servicecidr_controller.go, " +
			"syncStatus",
		Promise: "The ServiceCIDR kubernetes has the ranges of --service-cluster-ip-range and is said to be ready; " +
			"it is made anew when it is deleted, and one with other ranges is left as it is and is told about in " +
			"an Event."},
	{ID: "S13/kubernetes-endpoints-are-repaired", Waits: true, Failure: true, Test: kubernetesEndpointsAreRepaired,
		Source: "k8s.io/kubernetes/pkg/controlplane/reconcilers/lease.go, doReconcile; " +
			"k8s.io/kubernetes/pkg/controlplane/reconcilers/endpointsadapter.go",
		Promise: "The Endpoints and the EndpointSlice of default/kubernetes have the servers' addresses and the port " +
			"https; addresses that somebody changes are put back soon, and ports when a server leaves."},
})

// seldom is the pause between polls where a server does something every few seconds only, and where
// each poll also writes, to have the server look again (see touch).
const seldom = 500 * time.Millisecond

// dual launches a control plane with cluster IPs of both families.
func dual(ctx context.Context, beside *suite.T) (*envtest.ControlPlane, *suite.T) {
	cp, t := beside.Launch(ctx, envtest.WithFlags("--service-cluster-ip-range=10.9.0.0/24,fd00:9::/112"))
	t.Served(ctx, "/apis/networking.k8s.io/v1/servicecidrs/kubernetes")
	return cp, t
}

// eventReasons are the reasons and messages of the Events about an object.
func eventReasons(ctx context.Context, t *suite.T, name string) []string {
	list := suite.List(ctx, t, t.Kube.CoreV1().Events("").List,
		metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	var reasons []string
	for _, event := range list.Items {
		reasons = append(reasons, event.Reason+": "+event.Message)
	}
	return reasons
}

// tells waits until an Event about an object has this text in its "reason: message".
func tells(ctx context.Context, t *suite.T, name, reason string) {
	t.Eventually(ctx, func() []string { return eventReasons(ctx, t, name) }).WithPolling(seldom).
		Should(gomega.ContainElement(gomega.ContainSubstring(reason)), "Events about %s", name)
}

// touch annotates a Service, so that the server looks at it again.
func touch(ctx context.Context, t *suite.T, service *corev1.Service, why string) {
	_, err := t.Kube.CoreV1().Services(service.Namespace).Patch(ctx, service.Name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, why), metav1.PatchOptions{})
	t.Must(err, "annotate Service %s", service.Name)
}

// address is an IPAddress as the allocator makes it, for a Service.
func address(ip, family, namespace, service string) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: ip, Labels: map[string]string{
			networkingv1.LabelIPAddressFamily: family, networkingv1.LabelManagedBy: "ipallocator.k8s.io"}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services",
			Namespace: namespace, Name: service}},
	}
}

// lost are the ways in which an IPAddress is not what the allocator makes: change changes it, or if
// that is nil, it is deleted. event is what Events then say; empty if there are none.
var lost = map[string]struct {
	event  string
	change func(*networkingv1.IPAddress)
}{
	"gone":              {"is not allocated; repairing", nil},
	"without-a-family":  {"", func(a *networkingv1.IPAddress) { delete(a.Labels, networkingv1.LabelIPAddressFamily) }},
	"of-another-family": {"", func(a *networkingv1.IPAddress) { a.Labels[networkingv1.LabelIPAddressFamily] = "IPvX" }},
	"of-no-manager":     {"", func(a *networkingv1.IPAddress) { delete(a.Labels, networkingv1.LabelManagedBy) }},
	"of-a-group": {"has a wrong reference; repairing", func(a *networkingv1.IPAddress) {
		a.Labels, a.Spec.ParentRef.Group = nil, "gateway.networking.k8s.io"
	}},
	"of-a-pod": {"has a wrong reference; repairing", func(a *networkingv1.IPAddress) {
		a.Labels, a.Spec.ParentRef.Resource = nil, "pods"
	}},
	"of-nobody": {"has a wrong reference; repairing", func(a *networkingv1.IPAddress) {
		a.Labels, a.Spec.ParentRef.Name = nil, "nobody"
	}},
}

// lose deletes an IPAddress, or puts a changed one in its place. It tries again if the server has
// made the IPAddress anew before the changed one could be created.
func lose(ctx context.Context, t *suite.T, whole *networkingv1.IPAddress, change func(*networkingv1.IPAddress)) {
	addresses := t.Kube.NetworkingV1().IPAddresses()
	t.Eventually(ctx, func() error {
		if err := addresses.Delete(ctx, whole.Name, metav1.DeleteOptions{}); change == nil {
			return err
		}
		changed := whole.DeepCopy()
		change(changed)
		return suite.ErrorOf(addresses.Create(ctx, changed, metav1.CreateOptions{}))
	}).Should(gomega.Succeed(), "lose IPAddress %s", whole.Name)
}

func lostAddressIsMadeAnew(ctx context.Context, beside *suite.T) {
	_, t := dual(ctx, beside)
	namespace := t.Namespace(ctx)
	for how, is := range lost {
		for _, family := range []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol} {
			// Later Events of the same kind about a Service repeat the message of the first one, so each
			// try has a Service of its own.
			for try := 1; ; try++ {
				name := fmt.Sprintf("%s-%s-%d", strings.ToLower(string(family)), how, try)
				ip := isMadeAnew(ctx, t, namespace, name, family, is.change)
				if is.event == "" || toldAs(ctx, t, name, fmt.Sprintf("[%s]: %s", family, ip), is.event) {
					break
				}
			}
		}
	}
}

// isMadeAnew makes a Service, loses its IPAddress, and waits until that is as it was.
func isMadeAnew(ctx context.Context, t *suite.T, namespace, name string, family corev1.IPFamily,
	change func(*networkingv1.IPAddress)) (ip string) {
	service := t.MakeService(ctx, name, func(spec *corev1.ServiceSpec) { spec.IPFamilies = []corev1.IPFamily{family} })
	ip = service.Spec.ClusterIP
	whole := address(ip, string(family), namespace, name)
	lose(ctx, t, whole, change)
	// The server has separate watches for addresses and Services: when it looks at the Service, it may
	// not know yet that the address is lost.
	times := 0
	t.Eventually(ctx, func() (*networkingv1.IPAddress, error) {
		times++
		touch(ctx, t, service, fmt.Sprint(times))
		return t.Kube.NetworkingV1().IPAddresses().Get(ctx, ip, metav1.GetOptions{})
	}).WithPolling(seldom).Should(gomega.And(gomega.HaveField("Labels", whole.Labels), gomega.HaveField("Spec",
		whole.Spec)), "the address of %s", name)
	return ip
}

// toldAs waits for the Event about a Service whose address was lost, and reports whether it says was.
// It says instead that there was no address if the server looked between the deletion of the address
// and the creation of the changed one.
func toldAs(ctx context.Context, t *suite.T, name, ip, was string) bool {
	said := gomega.And(gomega.HavePrefix("ClusterIPNotAllocated: "), gomega.ContainSubstring(ip),
		gomega.Or(gomega.ContainSubstring(was), gomega.ContainSubstring(lost["gone"].event)))
	var told []string
	t.Eventually(ctx, func() []string { told = eventReasons(ctx, t, name); return told }).WithPolling(seldom).
		Should(gomega.ContainElement(said), "Events about %s", name)
	return slices.ContainsFunc(told, func(event string) bool { return strings.Contains(event, was) })
}

func strayAddressIsRemoved(ctx context.Context, beside *suite.T) {
	_, t := dual(ctx, beside)
	namespace, addresses := t.Namespace(ctx), t.Kube.NetworkingV1().IPAddresses()
	t.MakeService(ctx, "one")
	t.MakeService(ctx, "headless", suite.ClusterIP(corev1.ClusterIPNone))
	stays := address("10.9.0.201", "IPv4", namespace, "nobody")
	stays.Labels[networkingv1.LabelManagedBy] = "somebody"
	unlabelled := address("10.9.0.202", "IPv4", namespace, "one")
	unlabelled.Labels = nil
	pod := address("10.9.0.203", "IPv4", namespace, "one")
	pod.Spec.ParentRef.Resource = "pods"
	gateway := address("10.9.0.204", "IPv4", namespace, "one")
	gateway.Spec.ParentRef.Group = "gateway.networking.k8s.io"
	for _, a := range []*networkingv1.IPAddress{stays, unlabelled, pod, gateway,
		address("10.9.0.205", "IPv4", namespace, "one"), address("fd00:9::205", "IPv6", namespace, "headless")} {
		suite.Create(ctx, t, addresses.Create, a)
	}
	for name, reason := range map[string]string{
		pod.Name:     "IPAddressNotAllocated: IPAddress 10.9.0.203 appears to have been modified",
		gateway.Name: "IPAddressNotAllocated: IPAddress 10.9.0.204 appears to have been modified",
		"10.9.0.205": "IPAddressWrongReference: IPAddress: 10.9.0.205 for Service " + namespace +
			"/one has a wrong reference",
		"fd00:9::205": "IPAddressWrongReference: IPAddress: fd00:9::205 for Service " + namespace +
			"/headless has a wrong reference",
	} {
		t.Until(ctx, "/apis/networking.k8s.io/v1/ipaddresses/"+name, http.StatusNotFound, "IPAddress %s", name)
		tells(ctx, t, name, reason)
	}
	for _, a := range []*networkingv1.IPAddress{stays, unlabelled} {
		t.Answered(ctx, "/apis/networking.k8s.io/v1/ipaddresses/"+a.Name, http.StatusOK)
		t.Expect(eventReasons(ctx, t, a.Name)).To(gomega.BeEmpty(), "Events about %s", a.Name)
	}
}

func clusterIPWithoutARange(ctx context.Context, beside *suite.T) {
	_, t := dual(ctx, beside)
	namespace, ranges := t.Namespace(ctx), t.Kube.NetworkingV1().ServiceCIDRs()
	more := suite.Create(ctx, t, ranges.Create, &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.77.0.0/28"}}})
	more.Status.Conditions = []metav1.Condition{{Type: networkingv1.ServiceCIDRConditionReady,
		Status: metav1.ConditionTrue, Reason: "Case", LastTransitionTime: metav1.Now()}}
	t.Must(suite.ErrorOf(ranges.UpdateStatus(ctx, more, metav1.UpdateOptions{})), "make ServiceCIDR more ready")
	create := func(name, ip string) error {
		return suite.ErrorOf(t.TryService(ctx, name, suite.ClusterIP(ip)))
	}
	t.Eventually(ctx, func() error { return create("more", "10.77.0.5") }).
		Should(gomega.Succeed(), "a cluster IP of the ServiceCIDR more")
	t.Must(create("plain", "10.9.0.5"), "create Service plain, whose range stays")
	t.Must(ranges.Delete(ctx, "more", metav1.DeleteOptions{}), "delete ServiceCIDR more")
	for _, name := range []string{"plain", "more"} {
		service := suite.Get(ctx, t, t.Kube.CoreV1().Services(namespace).Get, name)
		t.Expect(service.Spec.ClusterIP == "10.77.0.5").To(gomega.Equal(name == "more"), "Service %s has %s", name,
			service.Spec.ClusterIP)
	}
	times := 0
	t.Eventually(ctx, func() []string {
		times++
		for _, name := range []string{"plain", "more"} {
			touch(ctx, t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}},
				fmt.Sprint(times))
		}
		return eventReasons(ctx, t, "more")
	}).WithPolling(seldom).Should(gomega.ContainElement(gomega.ContainSubstring("ClusterIPOutOfRange: Cluster IP " +
		"[IPv4]: 10.77.0.5 is not within any configured Service CIDR")))
	t.Expect(eventReasons(ctx, t, "plain")).To(gomega.BeEmpty(), "Events about plain")
	t.Expect(create("another", "10.77.0.6")).To(suite.BeStatus(suite.Invalid))
}

// readiness is the ranges and the conditions of the ServiceCIDR kubernetes, as text.
func readiness(ctx context.Context, t *suite.T) string {
	got, err := t.Kube.NetworkingV1().ServiceCIDRs().Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	described := fmt.Sprint(got.Spec.CIDRs)
	for _, condition := range got.Status.Conditions {
		described += fmt.Sprintf(" %s=%s: %s", condition.Type, condition.Status, condition.Message)
	}
	return described
}

func defaultRangeIsReady(ctx context.Context, beside *suite.T) {
	cp, t := dual(ctx, beside)
	const ready = "[10.9.0.0/24 fd00:9::/112] Ready=True: Kubernetes default Service CIDR is ready"
	ranges := t.Kube.NetworkingV1().ServiceCIDRs()
	said := func() string { return readiness(ctx, t) }
	t.Eventually(ctx, said).WithPolling(seldom).Should(gomega.Equal(ready))
	// A server that has just made the ServiceCIDR may not see it yet, try to make it again, and go on
	// with the empty result: then its Event is about nothing, and there is no other. A server that is
	// started again sees it.
	server := cp.Servers()[0]
	t.Must(server.Stop(ctx), "stop the server")
	t.Restarting(ctx, server)()
	t.Must(ranges.Delete(ctx, "kubernetes", metav1.DeleteOptions{}), "delete ServiceCIDR kubernetes")
	t.Eventually(ctx, said).WithPolling(seldom).Should(gomega.Equal(ready), "it is made anew")

	t.Must(ranges.Delete(ctx, "kubernetes", metav1.DeleteOptions{}), "delete ServiceCIDR kubernetes")
	suite.Create(ctx, t, ranges.Create, &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.8.0.0/24"}}})
	tells(ctx, t, "kubernetes", "KubernetesDefaultServiceCIDRInconsistent: The default ServiceCIDR [10.8.0.0/24] "+
		"does not match")
	t.Expect(said()).To(gomega.Equal("[10.8.0.0/24]"), "it is left as it is")

	t.Must(ranges.Delete(ctx, "kubernetes", metav1.DeleteOptions{}), "delete ServiceCIDR kubernetes")
	suite.Create(ctx, t, ranges.Create, &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.9.0.0/24"}}})
	t.Eventually(ctx, said).WithPolling(seldom).Should(gomega.Equal(ready), "it gets the other range")
}

func kubernetesEndpointsAreRepaired(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx, envtest.WithReplicas(2))
	const slicePath = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
	endpoints := t.Kube.CoreV1().Endpoints(metav1.NamespaceDefault) //nolint:staticcheck // the server still makes them
	described := func() string {
		got, err := endpoints.Get(ctx, "kubernetes", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		var ips, ports []string
		for _, subset := range got.Subsets {
			for _, a := range subset.Addresses {
				ips = append(ips, a.IP)
			}
			for _, port := range subset.Ports {
				ports = append(ports, fmt.Sprint(port.Name, " ", port.Protocol))
			}
		}
		slices.Sort(ips)
		return fmt.Sprint(len(got.Subsets), " ", ips, " ", ports, " ",
			got.Labels["endpointslice.kubernetes.io/skip-mirror"])
	}
	const whole = "1 [192.0.2.1 192.0.2.2] [https TCP] true"
	t.Eventually(ctx, described).WithPolling(seldom).Should(gomega.Equal(whole))
	t.Eventually(ctx, func() string { return string(t.Get(ctx, slicePath).Body) }).Should(gomega.And(
		gomega.ContainSubstring(`"addressType":"IPv4"`), gomega.ContainSubstring(`"192.0.2.1"`),
		gomega.ContainSubstring(`"192.0.2.2"`),
		gomega.ContainSubstring(`"kubernetes.io/service-name":"kubernetes"`), gomega.ContainSubstring(`"ready":true`)))
	patch := func(subsets string) {
		_, err := endpoints.Patch(ctx, "kubernetes", types.MergePatchType,
			[]byte(`{"metadata":{"labels":null},"subsets":`+subsets+`}`), metav1.PatchOptions{})
		t.Must(err, "patch Endpoints kubernetes")
	}
	const ports = `"ports":[{"name":"https","port":6443,"protocol":"TCP"}]`
	for what, subsets := range map[string]string{
		"another": `[{"addresses":[{"ip":"192.0.2.1"},{"ip":"192.0.2.3"}],` + ports + `}]`,
		"in two groups": `[{"addresses":[{"ip":"192.0.2.1"}],` + ports +
			`},{"addresses":[{"ip":"192.0.2.2"}],"ports":[{"name":"other","port":1,"protocol":"TCP"}]}]`,
	} {
		patch(subsets)
		t.Eventually(ctx, described).WithPolling(seldom).Should(gomega.Equal(whole), "addresses: %s", what)
	}
	patch(`[{"addresses":[{"ip":"192.0.2.1"},{"ip":"192.0.2.3"}],"ports":[{"name":"other","port":1,` +
		`"protocol":"TCP"}]}]`)
	t.Eventually(ctx, described).WithPolling(seldom).Should(gomega.Equal("1 [192.0.2.1 192.0.2.2] [other TCP] true"),
		"ports are left as they are")
	t.Must(cp.Servers()[1].Stop(ctx), "stop a server")
	t.Expect(described()).To(gomega.Equal("1 [192.0.2.1] [https TCP] true"), "a server that leaves puts ports back")
}
