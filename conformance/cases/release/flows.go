package release

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var flowCases = suite.Launching([]suite.Case{
	{ID: "S4/default-flows-are-those-of-the-release", Test: defaultFlowsAreThoseOfTheRelease,
		Source: "KEP-1040; k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap/default.go; " +
			"k8s.io/kubernetes/pkg/registry/flowcontrol/rest/storage_flowcontrol.go",
		Promise: "A server has the flow schemas and priority levels of its release, as they are suggested or " +
			"mandatory, each marked as kept up to date, none dangling, and no others."},
})

//go:embed kept/flows.txt
var keptFlows string

// Flow describes a flow schema or a priority level in a line.
func Flow(kind, name string, spec any) (string, error) {
	text, err := json.Marshal(spec)
	return fmt.Sprintf("%s %s %s", kind, name, text), err
}

func defaultFlowsAreThoseOfTheRelease(ctx context.Context, beside *suite.T) {
	t := plain(ctx, beside)
	found := func() []string {
		var all []string
		add := func(kind string, meta metav1.ObjectMeta, spec any) {
			if meta.Annotations["apf.kubernetes.io/autoupdate-spec"] != "true" {
				return // somebody else's
			}
			line, err := Flow(kind, meta.Name, spec)
			t.Must(err, "describe %s %s", kind, meta.Name)
			all = append(all, line)
		}
		schemas := suite.List(ctx, t, t.Kube.FlowcontrolV1().FlowSchemas().List, metav1.ListOptions{})
		for _, schema := range schemas.Items {
			add("FlowSchema", schema.ObjectMeta, schema.Spec)
		}
		levels := suite.List(ctx, t, t.Kube.FlowcontrolV1().PriorityLevelConfigurations().List, metav1.ListOptions{})
		for _, level := range levels.Items {
			add("PriorityLevelConfiguration", level.ObjectMeta, level.Spec)
		}
		return all
	}
	// The server makes them in the background.
	t.Eventually(ctx, func() []string { return differences(lines(keptFlows), found()) }).WithPolling(seldom).
		Should(gomega.BeEmpty(), "flow schemas and priority levels")
	t.Eventually(ctx, func() []string { return notSound(ctx, t) }).WithPolling(seldom).
		Should(gomega.BeEmpty(), "flow schemas that are not known to be sound")
}

// notSound are the flow schemas of the release of which the server has not said that they are not
// dangling.
func notSound(ctx context.Context, t *suite.T) []string {
	schemas := suite.List(ctx, t, t.Kube.FlowcontrolV1().FlowSchemas().List, metav1.ListOptions{})
	var names []string
	for _, schema := range schemas.Items {
		sound := false
		for _, condition := range schema.Status.Conditions {
			sound = sound || condition.Type == "Dangling" && condition.Status == "False" && condition.Reason == "Found"
		}
		if !sound && schema.Annotations["apf.kubernetes.io/autoupdate-spec"] == "true" {
			names = append(names, schema.Name)
		}
	}
	return names
}
