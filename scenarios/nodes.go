package scenarios

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"snowglobe.test/envtest/nodes"
)

// kubeletAgent is the user agent of the script's nodes.
const kubeletAgent = "kubelet"

var nodesCommand = command{
	name:    "nodes",
	args:    "[--count N] [--stop] [PODS]",
	most:    1,
	summary: "run simulated nodes, whose Pods behave as a table says",
	details: `They are called node-0, node-1, and so on, and renew their leases. Pods are bound to them
by kube-scheduler, or by a nodeName in the Pod. No containers run.

PODS is a YAML file with a list of rows. For each Pod, the first row applies whose "when",
a part of the Pod, matches; a row without "when" matches every Pod. A row has any of

- "never: true": the Pod stays Pending, as with an image that can't be pulled
- "readyAfter: 10s": how long its containers take to be ready
- "runs: 1m", "exitCode: 1": how long they run, and the code they exit with
- "stopsAfter: 5s": how long they take to exit when the Pod is deleted

If a row has matched no Pod by the time the nodes end, that is an error.

Pods that match no row are ready at once and run until they are deleted; those of a Job
complete at once. The nodes run until the API servers are shut down; --stop ends them at
once, as a power failure would.`,
	example:  "nodes --count 3 pods.yaml\nkube-scheduler",
	onServer: true,
	prepare: func(flags *pflag.FlagSet) action {
		count := flags.Int("count", 1, "")
		stop := flags.Bool("stop", false, "")
		return func(ctx context.Context, s *session, args []string) error {
			switch {
			case *stop && len(args) > 0:
				return fmt.Errorf("%w: %q; what ends, ends as a whole", errUsage, args[0])
			case *stop:
				return s.stopNodes()
			case *count < 1:
				return fmt.Errorf("%w: there can't be %d nodes", errUsage, *count)
			}
			var rows []podRow
			if len(args) == 1 {
				if err := yaml.UnmarshalStrict([]byte(s.ts.ReadFile(args[0])), &rows); err != nil {
					return fmt.Errorf("%w: %s: %w", errUsage, args[0], err)
				}
				for i, row := range rows {
					if err := row.validate(); err != nil {
						return fmt.Errorf("%w: %s: row %d: %w", errUsage, args[0], i+1, err)
					}
				}
			}
			return s.startNodes(ctx, *count, &podTable{where: s.here(), rows: rows, matched: make([]atomic.Bool, len(rows))})
		}
	},
}

// podTable is what a script says of the Pods on its nodes.
type podTable struct {
	where   string // it was said
	rows    []podRow
	matched []atomic.Bool // of each row, whether a Pod was like it
}

// podRow says how the Pods fare that it matches.
type podRow struct {
	When       map[string]any  `json:"when,omitempty"`
	Never      bool            `json:"never,omitempty"`
	ReadyAfter metav1.Duration `json:"readyAfter,omitzero"`
	Runs       metav1.Duration `json:"runs,omitzero"`
	ExitCode   int32           `json:"exitCode,omitempty"`
	StopsAfter metav1.Duration `json:"stopsAfter,omitzero"`
}

func (r podRow) script() nodes.Script {
	return nodes.Script{
		Never: r.Never, ReadyAfter: r.ReadyAfter.Duration, Runs: r.Runs.Duration,
		ExitCode: r.ExitCode, StopsAfter: r.StopsAfter.Duration,
	}
}

// validate refuses times below zero.
func (r podRow) validate() error {
	for _, d := range []metav1.Duration{r.ReadyAfter, r.Runs, r.StopsAfter} {
		if d.Duration < 0 {
			return fmt.Errorf("%s is not a time that passes", d.Duration)
		}
	}
	return nil
}

// script finds the row of a Pod.
func (t *podTable) script(pod *corev1.Pod) nodes.Script {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return nodes.Script{} // no Pod that a server has sent fails here
	}
	for i, row := range t.rows {
		if len(differences("", object, row.When)) == 0 {
			t.matched[i].Store(true)
			return row.script()
		}
	}
	return nodes.Script{}
}

// unmatched is an error for each row that has decided about no Pod.
func (t *podTable) unmatched() error {
	var errs []error
	for i := range t.rows {
		if !t.matched[i].Load() {
			errs = append(errs, fmt.Errorf("%s: row %d matched no Pod; remove it, or fix its \"when\"", t.where, i+1))
		}
	}
	return errors.Join(errs...)
}

func (s *session) startNodes(ctx context.Context, count int, pods *podTable) error {
	if s.nodes != nil {
		return errors.New("there are nodes already; end them with: nodes --stop")
	}
	config, err := s.config(kubeletAgent)
	if err != nil {
		return err
	}
	s.nodes, err = nodes.Launch(ctx, config, nodes.Config{Count: count, Script: pods.script})
	s.pods = pods
	return err
}

func (s *session) stopNodes() error {
	if s.nodes == nil {
		return errors.New("there are no nodes; start some with: nodes")
	}
	return s.endNodes()
}

// endNodes stops the nodes, if there are any. A row that was for no Pod is an error.
func (s *session) endNodes() error {
	if s.nodes == nil {
		return nil
	}
	s.nodes.Stop()
	s.nodes = nil
	return s.pods.unmatched()
}
