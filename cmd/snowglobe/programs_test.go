package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/internal/pages"
)

// TestProgramsStartTooLate holds what a program has to see before it is ready.
func TestProgramsStartTooLate(t *testing.T) {
	for program, opts := range map[string]upOptions{
		"kube-controller-manager": {controllers: []string{"namespace"}},
		"kube-scheduler":          {nodes: 1},
	} {
		t.Run(program, func(t *testing.T) {
			cp := envtest.Start(t, envtest.WithFaults(
				"hold http/list caller=system:"+program+" optional", "hold http/watch caller=system:"+program+" optional",
				"hold http/list caller=system:serviceaccount:* optional", "hold http/watch caller=system:serviceaccount:* optional"))
			opts.startTimeout = 50 * time.Millisecond
			_, err := startPrograms(t.Context(), cp, opts)
			require.ErrorContains(t, err, "start the "+program+": ")
			assert.ErrorContains(t, err, "not within 50ms; --start-timeout gives it longer")
			pages.Troubleshooting(t, "../..", err.Error())
		})
	}
}
