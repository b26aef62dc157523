// Package startup has the cases about health checks, hooks, and what a server makes by itself when
// it starts and repairs afterwards.
package startup

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

// Cases are the cases of this area.
var Cases = slices.Concat(startupCases, healthCases, bootstrapCases, repairCases, ensuredCases, identityCases)

var startupCases = []suite.Case{
	{ID: "S15/readyz-answers-ok", Level: suite.Core, Test: healthAnswersOK,
		Source:  "k8s.io/apiserver/pkg/server/healthz/healthz.go, handleRootHealth",
		Promise: "/readyz, /livez and /healthz of a ready server answer 200 with the two letters ok."},
	{ID: "S15/readyz-names-its-checks", Test: readyzNamesItsChecks,
		Source: "k8s.io/apiserver/pkg/server/healthz.go, AddReadyzChecks; " +
			"k8s.io/apiserver/pkg/server/genericapiserver.go, PrepareRun",
		Promise: "/readyz?verbose lists each check on a line of its own, all passed, informer-sync and shutdown " +
			"among them, and says that the check passed."},
	{ID: "S15/livez-leaves-readiness-out", Test: livezLeavesReadinessOut,
		Source: "k8s.io/apiserver/pkg/server/healthz.go: AddHealthChecks goes to all three paths, AddReadyzChecks " +
			"to /readyz alone",
		Promise: "/livez and /healthz check that the process is alive, not that it is ready: no informer-sync, no " +
			"etcd-readiness, no shutdown."},
	{ID: "S15/check-has-a-path", Failure: true, Test: checkHasAPath,
		Source:  "k8s.io/apiserver/pkg/server/healthz/healthz.go, InstallPathHandler",
		Promise: "Each check of /readyz and /livez has a path of its own below it; an unknown one is 404."},
	{ID: "S15/check-can-be-excluded", Test: checkCanBeExcluded,
		Source:  "k8s.io/apiserver/pkg/server/healthz/healthz.go, handleRootHealth",
		Promise: "exclude= leaves a check out and says so; excluding an unknown check only causes a warning."},
	{ID: "S16/post-start-hooks-are-checks", Test: postStartHooksAreChecks,
		Source:  "k8s.io/apiserver/pkg/server/hooks.go",
		Promise: "Every server of the chain has its post-start hooks among the checks of /readyz."},
	{ID: "S16/held-hook-keeps-readyz-red", Failure: true, Needs: suite.Launch, Test: heldHookKeepsReadyzRed,
		Source: "k8s.io/apiserver/pkg/server/hooks.go: a check passes when its hook has returned",
		Promise: "While a post-start hook has not returned, /readyz is 500 and names it alone, and turns 200 " +
			"once it has."},
	{ID: "S20/version-is-well-formed", Level: suite.Core, Test: versionIsWellFormed,
		Source:  "k8s.io/apiserver/pkg/server/routes/version.go",
		Promise: "/version reports a major and a minor that match gitVersion."},
	{ID: "S20/version-is-the-linked-release", Needs: suite.Needs{Release: true}, Test: versionIsTheRelease,
		Source:  "k8s.io/component-base/version/base.go: stamped by the build",
		Promise: "/version reports the release the server was built from."},
	{ID: "S13/system-namespaces-exist", Level: suite.Core, Test: systemNamespacesExist,
		Source:  "k8s.io/kubernetes/pkg/controlplane/controller/systemnamespaces",
		Promise: "The server creates the namespaces default, kube-system, kube-public and kube-node-lease by itself."},
	{ID: "S13/kubernetes-service-exists", Test: kubernetesServiceExists,
		Source:  "k8s.io/kubernetes/pkg/controlplane/controller/kubernetesservice",
		Promise: "The server creates the service default/kubernetes by itself, with a cluster IP and the https port."},
	{ID: "S8/bootstrap-roles-exist", Level: suite.Core, Test: bootstrapRolesExist,
		Source:  "k8s.io/kubernetes/pkg/registry/rbac/rest/storage_rbac.go: hook rbac/bootstrap-roles",
		Promise: "A ready server has its default cluster roles and their bindings, marked as bootstrapped."},
	{ID: "S12/system-priority-classes-exist", Test: systemPriorityClassesExist,
		Source:  "k8s.io/kubernetes/pkg/apis/scheduling/v1/helpers.go",
		Promise: "A ready server has both system priority classes, with their fixed values."},
}

func healthAnswersOK(ctx context.Context, t *suite.T) {
	answeredOK(ctx, t, "/readyz", "/livez", "/healthz")
}

// answeredOK asserts that health checks pass.
func answeredOK(ctx context.Context, t *suite.T, paths ...string) {
	for _, path := range paths {
		got := t.Answered(ctx, path, http.StatusOK)
		t.Expect(string(got.Body)).To(gomega.Equal("ok"), "%s", got)
	}
}

// checks parses a verbose health report into the state of each check and the last line.
func checks(t *suite.T, got suite.Answer) (states map[string]string, verdict string) {
	states = map[string]string{}
	for line := range strings.Lines(string(got.Body)) {
		line = strings.TrimSpace(line)
		mark, check, marked := strings.Cut(line, "]")
		if !marked || mark != "[+" && mark != "[-" {
			if !strings.HasPrefix(line, "warn: ") {
				verdict = line
			}
			continue
		}
		name, state, _ := strings.Cut(check, " ")
		t.Expect(states).NotTo(gomega.HaveKey(name), "check %s is listed twice: %s", name, got)
		states[name] = mark + "]" + state
	}
	return states, verdict
}

func readyzNamesItsChecks(ctx context.Context, t *suite.T) {
	got := t.Answered(ctx, "/readyz?verbose", http.StatusOK)
	states, verdict := checks(t, got)
	t.Expect(verdict).To(gomega.Equal("readyz check passed"), "%s", got)
	for _, name := range []string{"ping", "log", "etcd", "etcd-readiness", "informer-sync", "shutdown"} {
		t.Expect(states).To(gomega.HaveKey(name), "%s", got)
	}
	t.Expect(states).To(gomega.HaveEach("[+]ok"), "%s", got)
}

func livezLeavesReadinessOut(ctx context.Context, t *suite.T) {
	for _, name := range []string{"livez", "healthz"} {
		got := t.Get(ctx, "/"+name+"?verbose")
		states, verdict := checks(t, got)
		t.Expect(verdict).To(gomega.Equal(name+" check passed"), "%s", got)
		t.Expect(states).To(gomega.And(gomega.HaveKey("ping"), gomega.HaveKey("etcd")), "%s", got)
		for _, only := range []string{"informer-sync", "etcd-readiness", "shutdown"} {
			t.Expect(states).NotTo(gomega.HaveKey(only), "%s", got)
		}
	}
}

func checkHasAPath(ctx context.Context, t *suite.T) {
	answeredOK(ctx, t, "/readyz/ping", "/readyz/etcd", "/readyz/informer-sync", "/livez/ping",
		"/readyz/poststarthook/crd-informer-synced")
	t.Answered(ctx, "/readyz/no-such-check", http.StatusNotFound)
	t.Answered(ctx, "/livez/informer-sync", http.StatusNotFound)
}

func checkCanBeExcluded(ctx context.Context, t *suite.T) {
	got := t.Answered(ctx, "/readyz?verbose&exclude=etcd&exclude=no-such-check", http.StatusOK)
	states, verdict := checks(t, got)
	t.Expect(states).To(gomega.HaveKeyWithValue("etcd", "[+]excluded: ok"), "%s", got)
	t.Expect(states).To(gomega.HaveKeyWithValue("ping", "[+]ok"), "%s", got)
	t.Expect(string(got.Body)).
		To(gomega.ContainSubstring(`warn: some health checks cannot be excluded: no matches for "no-such-check"`))
	t.Expect(verdict).To(gomega.Equal("readyz check passed"), "%s", got)
}

// hooks are the post-start hooks of all servers of the chain, without those that a flag turns off.
var hooks = []string{
	// k8s.io/apiserver/pkg/server/config.go
	"generic-apiserver-start-informers",
	// k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go
	"start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced",
	// k8s.io/kubernetes/pkg/controlplane/{instance.go,apiserver/server.go}
	"start-system-namespaces-controller", "bootstrap-controller", "start-cluster-authentication-info-controller",
	// k8s.io/kubernetes/pkg/registry/scheduling/rest/storage_scheduling.go
	"scheduling/bootstrap-system-priority-classes",
	// k8s.io/kube-aggregator/pkg/apiserver/apiserver.go, k8s.io/kubernetes/pkg/controlplane/apiserver/aggregator.go
	"start-kube-aggregator-informers", "apiservice-registration-controller", "apiservice-discovery-controller",
	"kube-apiserver-autoregistration",
}

func postStartHooksAreChecks(ctx context.Context, t *suite.T) {
	got := t.Get(ctx, "/readyz?verbose")
	states, _ := checks(t, got)
	for _, hook := range hooks {
		t.Expect(states).To(gomega.HaveKeyWithValue("poststarthook/"+hook, "[+]ok"), "%s", got)
	}
}

func heldHookKeepsReadyzRed(ctx context.Context, t *suite.T) {
	const hook = "scheduling/bootstrap-system-priority-classes"
	cp, other := t.Launch(ctx, envtest.WithFaults("hold hook/"+hook))
	t.Eventually(ctx, other.Readyz).WithContext(ctx).Should(gomega.Equal(
		`500 ["[-]poststarthook/` + hook + ` failed: reason withheld" "readyz check failed"]`))
	t.Must(cp.Faults().Release("hook/"+hook), "release hook %s", hook)
	t.Eventually(ctx, other.Readyz).WithContext(ctx).Should(gomega.Equal(`200 ["readyz check passed"]`))
}

func versionOf(ctx context.Context, t *suite.T) version.Info {
	return suite.GetJSON[version.Info](ctx, t, "/version")
}

func versionIsWellFormed(ctx context.Context, t *suite.T) {
	info := versionOf(ctx, t)
	t.Expect(info.GitVersion).To(gomega.HavePrefix("v%s.%s.", info.Major, strings.TrimSuffix(info.Minor, "+")))
	t.Expect(info.Platform).To(gomega.MatchRegexp(`^\w+/\w+$`))
	t.Expect(info.GoVersion).NotTo(gomega.BeEmpty())
}

func versionIsTheRelease(ctx context.Context, t *suite.T) {
	t.Expect(versionOf(ctx, t).GitVersion).To(gomega.Equal(t.Cluster.Release))
}

func systemNamespacesExist(ctx context.Context, t *suite.T) {
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic,
		"kube-node-lease"} {
		t.Served(ctx, "/api/v1/namespaces/"+name)
	}
}

func kubernetesServiceExists(ctx context.Context, t *suite.T) {
	t.Served(ctx, "/api/v1/namespaces/default/services/kubernetes")
	service := suite.Get(ctx, t, t.Kube.CoreV1().Services(metav1.NamespaceDefault).Get, "kubernetes")
	t.Expect(service.Labels).To(gomega.And(
		gomega.HaveKeyWithValue("component", "apiserver"), gomega.HaveKeyWithValue("provider", "kubernetes")))
	t.Expect(service.Spec.ClusterIP).NotTo(gomega.BeEmpty())
	t.Expect(service.Spec.Ports).To(gomega.ConsistOf(
		gomega.And(gomega.HaveField("Name", "https"), gomega.HaveField("Port", int32(443)))))
}

func bootstrapRolesExist(ctx context.Context, t *suite.T) {
	for _, name := range []string{"cluster-admin", "system:discovery", "system:public-info-viewer",
		"system:basic-user"} {
		t.Expect(t.Kube.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})).To(
			gomega.HaveField("Labels", gomega.HaveKeyWithValue("kubernetes.io/bootstrapping", "rbac-defaults")))
		t.Expect(t.Kube.RbacV1().ClusterRoleBindings().Get(ctx, name, metav1.GetOptions{})).
			To(gomega.HaveField("RoleRef.Name", name))
	}
}

func systemPriorityClassesExist(ctx context.Context, t *suite.T) {
	for name, value := range map[string]int32{"system-node-critical": 2000001000,
		"system-cluster-critical": 2000000000} {
		t.Expect(t.Kube.SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{})).To(
			gomega.And(gomega.HaveField("Value", value), gomega.HaveField("GlobalDefault", false)))
	}
}
