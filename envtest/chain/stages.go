package chain

import (
	"context"
	"fmt"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/trace"
)

// assembly is the order of upstream's own start: options to configuration, then to
// servers from the end of the chain to its head, then PrepareRun. Run follows.
var assembly = []stage{
	{"options", (*Chain).completeOptions},
	{"egress", (*Chain).buildEgress},
	{"generic", (*Chain).buildGeneric},
	{"etcd-preflight", (*Chain).preflight},
	{"kube-apiserver-config", (*Chain).buildKubeAPIConfig},
	{"apiextensions-config", (*Chain).buildAPIExtensionsConfig},
	{"aggregator-config", (*Chain).buildAggregatorConfig},
	{"not-found", (*Chain).buildNotFound},
	{"apiextensions", (*Chain).buildAPIExtensions},
	{"kube-apiserver", (*Chain).buildKubeAPI},
	{"aggregator", (*Chain).buildAggregator},
	{"prepare", (*Chain).prepare},
	{"hooks", (*Chain).wrapHooks},
}

const stageRun = "run"

type stage struct {
	name string
	do   func(*Chain, context.Context) error
}

// Stages lists the stages in the order in which they are entered. Rules hold,
// delay or fail one, or crash the server before it, at the point stage/NAME.
func Stages() []string {
	names := make([]string, 0, len(assembly)+1)
	for _, s := range assembly {
		names = append(names, s.name)
	}
	return append(names, stageRun)
}

// enter runs one stage, unless rules say otherwise.
func (c *Chain) enter(ctx context.Context, name string, do func() error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("start chain: stage %s: %w", name, context.Cause(ctx))
	}
	traced := func(do func() error) error {
		c.cfg.Trace.Record(trace.Stage{Name: name, Phase: trace.Start})
		err := do()
		c.cfg.Trace.Record(trace.Stage{Name: name, Phase: trace.End, Err: err})
		return err
	}
	err := edge.Execute(ctx, c.injector, func() fault.Operation {
		return fault.Operation{Point: fault.StagePoint + name}
	}, edge.Ways[error]{
		Proceed: func() error { return traced(do) },
		Fail:    func(err error) error { return traced(func() error { return err }) },
	})
	if err != nil {
		return fmt.Errorf("start chain: stage %s: %w", name, err)
	}
	return nil
}
