package chain

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"
)

// TestPatientInformers builds the node authorizer in virtual time, once for a chain
// that runs and once for one that ends first. With upstream's informers time would
// stand still in both, and the goroutine of the second would never end.
func TestPatientInformers(t *testing.T) {
	for _, runs := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
			ended, stop := make(chan struct{}), make(chan struct{})
			patient := patientInformers{factory, ended}
			core := patient.Core().V1()
			node.AddGraphEventHandlers(node.NewGraph(), core.Nodes(), core.Pods(), core.PersistentVolumes(),
				patient.Storage().V1().VolumeAttachments(), patient.Resource().V1().ResourceSlices(), patient.Certificates().V1().PodCertificateRequests())
			time.Sleep(time.Hour)
			if runs {
				factory.Start(stop)
				for informer, synced := range factory.WaitForCacheSync(stop) {
					assert.True(t, synced, "%s has not synced", informer)
				}
			}
			close(ended)
			close(stop)
			factory.Shutdown()
		})
	}
}

// TestPatientRegistration does not say yes too early.
func TestPatientRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
		registration, err := patientInformers{factory, make(chan struct{})}.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{})
		require.NoError(t, err)
		answered := make(chan bool, 1)
		go func() { answered <- registration.HasSynced() }()
		synctest.Wait()
		assert.Empty(t, answered, "an informer that has not been started is said to have synced")
		stop := make(chan struct{})
		factory.Start(stop)
		assert.True(t, <-answered, "an informer that has synced is said not to have")
		close(stop)
		factory.Shutdown()
	})
}

// neverStops are the linked packages that wait for wait.NeverStop, with the reason
// why the chain can leave the variable alone.
var neverStops = map[string]string{
	"k8s.io/apiserver/pkg/server/healthz":               "replaceLogCheck takes the place of the check that flushes for ever",
	"k8s.io/apiserver/plugin/pkg/audit/buffered":        "it receives from a closed channel at the same time, so that it never waits",
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node": "patientInformers answer before it waits",
}

// TestNeverStops fails when upstream waits for wait.NeverStop in another place. A
// goroutine that does outlives the chain, and in virtual time stops the clock.
func TestNeverStops(t *testing.T) {
	const declares = "k8s.io/apimachinery/pkg/util/wait"
	importers := `{{$p := .}}{{range .Imports}}{{if eq . "` + declares + `"}}{{range $p.GoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}{{end}}{{end}}`
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", importers, ".").Output()
	require.NoError(t, err)
	use := regexp.MustCompile(`(?m)^[^/\n]*\bwait\.(NeverStop|Forever)\b`)
	found := map[string]bool{}
	for line := range strings.Lines(string(output)) {
		pkg, file, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		if use.Match(content) {
			found[pkg] = true
		}
	}
	assert.Empty(t, cmp.Diff(slices.Sorted(maps.Keys(neverStops)), slices.Sorted(maps.Keys(found))), "packages that wait for wait.NeverStop (-known +found)")
}
