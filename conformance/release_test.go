package conformance_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"sigs.k8s.io/yaml"

	"snowglobe.test/conformance/cases/release"
	"snowglobe.test/envtest/serverflags"
)

// TestReleaseIsFresh shows that the files that cases compare servers with are made from those of the
// linked release.
func TestReleaseIsFresh(t *testing.T) {
	upstream := upstreamFolder(t)
	for name, made := range map[string][]string{
		"resources": releaseResources(t, upstream), "openapi": releaseDocuments(t, upstream), "roles": releaseRoles(t, upstream), "flows": releaseFlows(t), "flags": releaseFlags(),
	} {
		file, fresh := filepath.Join("cases", "release", "kept", name+".txt"), strings.Join(made, "\n")+"\n"
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(fresh), 0o644))
		}
		committed, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Empty(t, cmp.Diff(string(committed), fresh), "%s is stale; run: go test ./conformance -run TestReleaseIsFresh -update", file)
	}
}

// upstreamFolder is that of the module k8s.io/kubernetes.
func upstreamFolder(t *testing.T) string {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

func releaseResources(t *testing.T, upstream string) []string {
	files, err := filepath.Glob(filepath.Join(upstream, "api", "discovery", "api*__v*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var list metav1.APIResourceList
		require.NoError(t, json.Unmarshal(text, &list), file)
		all = append(all, release.Resources(list)...)
	}
	slices.Sort(all)
	return all
}

func releaseDocuments(t *testing.T, upstream string) []string {
	files, err := filepath.Glob(filepath.Join(upstream, "api", "openapi-spec", "v3", "*__*_openapi.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		digest, err := release.Digest(text)
		require.NoError(t, err, file)
		path := strings.TrimSuffix(filepath.Base(file), "_openapi.json")
		all = append(all, strings.ReplaceAll(path, "__", "/")+" "+digest)
	}
	slices.Sort(all)
	return all
}

func releaseRoles(t *testing.T, upstream string) []string {
	read := func(name string, into any) {
		text, err := os.ReadFile(filepath.Join(upstream, "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata", name+".yaml"))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, into), name)
	}
	var all []string
	for _, name := range []string{"cluster-roles", "controller-roles"} {
		var list rbacv1.ClusterRoleList
		read(name, &list)
		for _, role := range list.Items {
			all = append(all, release.Role("ClusterRole", role.ObjectMeta, role.Rules, role.AggregationRule)...)
		}
	}
	for _, name := range []string{"cluster-role-bindings", "controller-role-bindings"} {
		var list rbacv1.ClusterRoleBindingList
		read(name, &list)
		for _, binding := range list.Items {
			all = append(all, release.Binding("ClusterRoleBinding", binding.ObjectMeta, binding.RoleRef, binding.Subjects))
		}
	}
	var namespaced rbacv1.RoleList
	read("namespace-roles", &namespaced)
	for _, role := range namespaced.Items {
		all = append(all, release.Role("Role", role.ObjectMeta, role.Rules, nil)...)
	}
	var bindings rbacv1.RoleBindingList
	read("namespace-role-bindings", &bindings)
	for _, binding := range bindings.Items {
		all = append(all, release.Binding("RoleBinding", binding.ObjectMeta, binding.RoleRef, binding.Subjects))
	}
	slices.Sort(all)
	return all
}

func releaseFlows(t *testing.T) []string {
	var all []string
	add := func(kind, name string, spec any) {
		line, err := release.Flow(kind, name, spec)
		require.NoError(t, err)
		all = append(all, line)
	}
	for _, schema := range slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas) {
		add("FlowSchema", schema.Name, schema.Spec)
	}
	for _, level := range slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations) {
		add("PriorityLevelConfiguration", level.Name, level.Spec)
	}
	slices.Sort(all)
	return all
}

func releaseFlags() []string {
	var all []string
	for name, value := range serverflags.Defaults() {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}
