package process_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"snowglobe.test/envtest/process"
)

// TestSite has crashes say in which function they happened.
func TestSite(t *testing.T) {
	for name, end := range map[string]func(){"fatal": fatal, "broken": broken} {
		crashes := make(chan error, 1)
		m, err := process.Join("right", process.Flags{}, io.Discard, func(err error) { crashes <- err })
		require.NoError(t, err)
		<-m.Go(end)
		var site *process.SiteError
		require.ErrorAs(t, <-crashes, &site)
		assert.Equal(t, "snowglobe.test/envtest/process_test."+name, site.Site)
		m.Leave()
	}
}

func fatal() { klog.Fatal("the end") }

func broken() {
	defer utilruntime.HandleCrash()
	var none map[string]int
	//lint:ignore SA5000 it is what breaks
	none["a"] = 1
}
