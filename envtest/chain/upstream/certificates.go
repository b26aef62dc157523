package upstream

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2"
)

// polling runs what follows a file by looking at it at intervals. Upstream's own Run has the
// operating system tell it of changes, for which virtual time can't wait.
type polling struct {
	dynamiccertificates.ControllerRunner
	interval time.Duration
}

// Run implements dynamiccertificates.ControllerRunner. Upstream's own, which comes when there is
// nothing to wait for any more, ends the work queue.
func (p polling) Run(ctx context.Context, workers int) {
	defer p.ControllerRunner.Run(ctx, workers)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := p.RunOnce(ctx); err != nil {
			klog.ErrorS(err, "Failed to load certificates, will retry later")
		}
	}, p.interval)
}

type polledCA struct {
	dynamiccertificates.CAContentProvider
	polling
}

// PollCA looks at the files of authorities at intervals. What follows none is returned as it is.
func PollCA(ca dynamiccertificates.CAContentProvider, interval time.Duration) dynamiccertificates.CAContentProvider {
	if runner, ok := ca.(dynamiccertificates.ControllerRunner); ok {
		return &polledCA{ca, polling{runner, interval}}
	}
	return ca
}

type polledPair struct {
	dynamiccertificates.CertKeyContentProvider
	polling
}

// PollPair looks at the files of a certificate and its key at intervals. What follows none is
// returned as it is.
func PollPair(pair dynamiccertificates.CertKeyContentProvider, interval time.Duration) dynamiccertificates.CertKeyContentProvider {
	if runner, ok := pair.(dynamiccertificates.ControllerRunner); ok {
		return &polledPair{pair, polling{runner, interval}}
	}
	return pair
}

type polledSNI struct {
	dynamiccertificates.SNICertKeyContentProvider
	polling
}

// PollSNI is PollPair for a certificate with names.
func PollSNI(pair dynamiccertificates.SNICertKeyContentProvider, interval time.Duration) dynamiccertificates.SNICertKeyContentProvider {
	if runner, ok := pair.(dynamiccertificates.ControllerRunner); ok {
		return &polledSNI{pair, polling{runner, interval}}
	}
	return pair
}
