package envtest_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
)

// timedCaches are where upstream keeps answers for some time, with one cache of each kind.
var timedCaches = []string{
	"LimitRanger.liveLookupCache",
	"NamespaceLifecycle.forceLiveLookupCache",
	"ResourceQuota.quotaAccessor.liveLookupCache",
	"ResourceQuota.quotaAccessor.updatedQuotas",
	"MutatingAdmissionPolicy.Plugin.source",
	"ValidatingAdmissionPolicy.Plugin.source",
}

// TestTimedCaches has the names of the caches that a Reset empties.
func TestTimedCaches(t *testing.T) {
	t.Parallel()
	names := envtest.Start(t, envtest.WithWebhookFlag("authentication-token-webhook-config-file", http.NotFoundHandler()),
		envtest.WithWebhookFlag("authorization-webhook-config-file", http.NotFoundHandler()),
		envtest.WithFlags("--authorization-mode=RBAC,Webhook")).TimedCaches()
	assert.Subset(t, names, timedCaches)
	for _, kind := range []string{`^authenticator\..*\.cache$`, `\.responseCache$`} {
		assert.True(t, slices.ContainsFunc(names, regexp.MustCompile(kind).MatchString), "no cache is like %s", kind)
	}
}

// madeBy is how caches are made that keep something for some time, or a number of things.
var madeBy = regexp.MustCompile(`\b(NewLRUExpireCache|NewLRUExpireCacheWithClock|NewExpiring|NewExpiringWithClock|lru\.New|lru\.NewWithEvictionFunc|NewTTLStore|NewExpirationStore)\(`)

// knownCaches are the files in which a server makes such a cache, and why none of it is left in the
// next test.
var knownCaches = map[string]string{
	"apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go": "emptied",
	"apiserver/pkg/admission/plugin/resourcequota/resource_access.go": "emptied",
	"apiserver/pkg/authentication/token/cache/cache_simple.go":        "emptied",
	"apiserver/pkg/endpoints/filters/impersonation/cache.go":          "made anew with its filter",
	"apiserver/pkg/storage/value/encrypt/aes/cache.go":                "of keys by their content",
	"apiserver/pkg/storage/value/encrypt/envelope/envelope.go":        "of keys by their content",
	"apiserver/pkg/storage/value/encrypt/envelope/kmsv2/cache.go":     "of keys by their content",
	"apiserver/pkg/storage/value/encrypt/envelope/metrics/metrics.go": "of metrics",
	"apiserver/pkg/util/webhook/client.go":                            "of clients by their configuration",
	"apiserver/plugin/pkg/authorizer/webhook/webhook.go":              "emptied",
	"kubernetes/plugin/pkg/admission/eventratelimit/limitenforcer.go": "emptied",
	"kubernetes/plugin/pkg/admission/imagepolicy/admission.go":        "emptied",
	"kubernetes/plugin/pkg/admission/limitranger/admission.go":        "emptied",
}

// TestUpstreamCaches looks for such caches in the source of the servers.
func TestUpstreamCaches(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for module, folders := range map[string][]string{
		"kubernetes": {"plugin", "pkg/controlplane", "pkg/kubeapiserver", "pkg/registry", "pkg/serviceaccount", "pkg/auth", "pkg/quota"},
		"apiserver":  {"pkg", "plugin"}, "kube-aggregator": {"pkg"}, "apiextensions-apiserver": {"pkg"},
	} {
		dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/"+module).Output()
		require.NoError(t, err)
		for _, folder := range folders {
			root := strings.TrimSpace(string(dir))
			require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, entry os.DirEntry, err error) error {
				if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
					return err
				}
				text, err := os.ReadFile(path)
				if madeBy.Match(text) {
					within, _ := filepath.Rel(root, path)
					found[module+"/"+filepath.ToSlash(within)] = true
				}
				return err
			}))
		}
	}
	for file := range found {
		assert.Contains(t, knownCaches, file, "what becomes of its caches in a Reset?")
	}
	for file := range knownCaches {
		assert.Contains(t, found, file, "upstream no longer makes a cache there")
	}
}

// TestResetForgets has an answer of each kind cached, resets, and asks again.
func TestResetForgets(t *testing.T) {
	t.Parallel()
	var authenticated atomic.Bool
	tokens := reviewer(func(asked *authenticationv1.TokenReview) {
		asked.Status.Authenticated = authenticated.Load()
		asked.Status.User.Username = "ali"
	})
	cp := envtest.Start(t, envtest.WithWebhookFlag("authentication-token-webhook-config-file", tokens))
	admin := kubernetes.NewForConfigOrDie(cp.Config())
	reset := func() { require.NoError(t, cp.Reset(t.Context())) }

	t.Run("LimitRanges", func(t *testing.T) {
		limited := func() bool {
			p := &settledProbe{T: t, config: cp.Config(), client: admin, name: "default"}
			pod, err := p.pod(func(*corev1.PodSpec) {})
			require.NoError(t, err)
			return len(pod.Spec.Containers[0].Resources.Limits) > 0
		}
		limit := func() {
			limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			_, err := admin.CoreV1().LimitRanges("default").Create(t.Context(), &corev1.LimitRange{
				ObjectMeta: metav1.ObjectMeta{Name: "limits"},
				Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: limits}}},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		require.False(t, limited())
		reset()
		limit()
		assert.True(t, limited(), "the Pod lacks the limits of a LimitRange")
		reset()
		assert.False(t, limited(), "the Pod has the limits of a LimitRange that is gone")
	})
	t.Run("tokens of a webhook", func(t *testing.T) {
		defer reset()
		config := rest.CopyConfig(cp.Config())
		config.BearerToken = "sesame"
		known := func() bool {
			_, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().
				Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			return err == nil
		}
		authenticated.Store(true)
		require.True(t, known())
		authenticated.Store(false)
		require.True(t, known(), "nothing is cached: the test would show nothing")
		reset()
		assert.False(t, known())
	})
	t.Run("tokens of service accounts", func(t *testing.T) {
		accounts := admin.CoreV1().ServiceAccounts("default")
		_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		issued, err := accounts.CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		require.NoError(t, err)
		config := rest.CopyConfig(cp.Config())
		config.BearerToken = issued.Status.Token
		ask := func() error {
			_, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().
				Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			return err
		}
		require.NoError(t, ask())
		reset()
		assert.True(t, apierrors.IsUnauthorized(ask()), "the token of a service account that is gone is good")
	})
	t.Run("impersonations", func(t *testing.T) {
		bind := func() {
			_, err := admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
				ObjectMeta: metav1.ObjectMeta{Name: "act"}, Rules: []rbacv1.PolicyRule{
					{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"users"}, Verbs: []string{"impersonate:user-info"}},
					{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"selfsubjectreviews"}, Verbs: []string{"impersonate-on:user-info:create"}},
				},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
			_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "act"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "act"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "actor"}},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		config := cp.Config(envtest.User("actor"))
		config.Impersonate.UserName = "somebody"
		ask := func() error {
			_, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().
				Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			return err
		}
		bind()
		require.NoError(t, ask())
		reset()
		assert.True(t, apierrors.IsForbidden(ask()), "an impersonation is allowed whose role is gone")
	})
}

// TestResetForgetsPolicies has a policy enforced for as long as it is there, and no longer.
func TestResetForgetsPolicies(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, cp *envtest.ControlPlane) {
		p := &settledProbe{T: t, config: cp.Config(), client: kubernetes.NewForConfigOrDie(cp.Config()), name: "guarded"}
		enforced := func() bool {
			err := p.configMap()
			return err != nil && !apierrors.IsAlreadyExists(err)
		}
		p.namespace()
		policyKnown(p)
		require.Eventually(t, enforced, time.Minute, 10*time.Millisecond, "upstream looks once a second")
		guarded, err := cp.Snapshot(t.Context())
		require.NoError(t, err)
		require.NoError(t, cp.Restore(t.Context(), guarded))
		assert.True(t, enforced(), "a policy that is in the snapshot")
		require.NoError(t, cp.Reset(t.Context()))
		p.namespace()
		assert.NoError(t, p.configMap(), "the policy of another test")
	}
	t.Run("virtual", func(t *testing.T) { envtest.Simulate(t, test) })
	t.Run("real", func(t *testing.T) { test(t, envtest.Start(t)) })
}
