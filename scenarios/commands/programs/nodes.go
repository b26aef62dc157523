package programs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"snowglobe.test/envtest/nodes"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
	"snowglobe.test/scenarios/subset"
)

// kubeletAgent is the user agent of the script's nodes.
const kubeletAgent = "kubelet"

func (p *Programs) Nodes() engine.Command {
	return engine.Command{
		Name:    "nodes",
		Args:    "[--count N] [--stop] [PODS]",
		Summary: "run simulated nodes, whose Pods behave as a table says",
		Details: `They are called node-0, node-1, and so on, and renew their leases. Pods are bound to them
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
		Example: "nodes --count 3 pods.yaml\nkube-scheduler",
		Needs:   p.servers.Running,
		Static:  checkNodes,
		Files: func(_ *pflag.FlagSet, args []string) []engine.NamedFile {
			return engine.NamedFiles(script.ListCheck[podRow]("row"), args...)
		},
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			count := flags.Int("count", 1, "")
			stop := flags.Bool("stop", false, "")
			return func(ctx context.Context, args []string) error {
				if *stop {
					return p.stopNodes()
				}
				var rows []podRow
				if len(args) == 1 {
					text, err := p.run.ReadFile(args[0])
					if err != nil {
						return err
					}
					if rows, err = script.ReadList[podRow](text, "row"); err != nil {
						return fmt.Errorf("%w: %s: %w", engine.ErrUsage, args[0], err)
					}
				}
				return p.startNodes(ctx, *count, &podTable{where: p.run.Here(), rows: rows, matched: make([]atomic.Bool, len(rows))})
			}
		},
	}
}

func checkNodes(flags *pflag.FlagSet, args []string) error {
	stop, stopErr := flags.GetBool("stop")
	count, countErr := flags.GetInt("count")
	switch {
	case stop && len(args) > 0:
		return fmt.Errorf("%w: %q; what ends, ends as a whole", engine.ErrUsage, args[0])
	case count < 1:
		return fmt.Errorf("%w: there can't be %d nodes", engine.ErrUsage, count)
	}
	return errors.Join(stopErr, countErr)
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

// Validate refuses times below zero.
func (r podRow) Validate() error {
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
		if len(subset.Differences(object, row.When)) == 0 {
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

func (p *Programs) startNodes(ctx context.Context, count int, pods *podTable) error {
	if p.nodes != nil {
		return errors.New("there are nodes already; end them with: nodes --stop")
	}
	config, err := p.clients.Config(kubeletAgent)
	if err != nil {
		return err
	}
	p.nodes, err = nodes.Launch(ctx, config, nodes.Config{Count: count, Script: pods.script})
	p.pods = pods
	return err
}

func (p *Programs) stopNodes() error {
	if p.nodes == nil {
		return errors.New("there are no nodes; start some with: nodes")
	}
	return p.endNodes()
}

// endNodes stops the nodes, if there are any. A row that was for no Pod is an error.
func (p *Programs) endNodes() error {
	if p.nodes == nil {
		return nil
	}
	p.nodes.Stop()
	p.nodes = nil
	return p.pods.unmatched()
}
