package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/ledger"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/internal/stock"
)

// Stock is a source that runs a kube-apiserver and an etcd, which are programs, as
// controller-runtime's envtest does.
type Stock struct {
	// Folder has the two programs.
	Folder string
	// StartTimeout bounds the start of each program. Zero means a minute.
	StartTimeout time.Duration
}

// String implements engine.Source.
func (s Stock) String() string { return "stock kube-apiserver and etcd" }

// programs are a stock kube-apiserver and an etcd, which end with the run.
type programs struct {
	*suite.Cluster
	folder string
	client kubernetes.Interface
	stop   func() error
}

// Open implements engine.Source.
func (s Stock) Open(ctx context.Context) (engine.Target[*suite.T], error) {
	found, err := stock.Find(ctx, s.Folder)
	if err != nil {
		return nil, err
	}
	release := strings.TrimPrefix(found.APIServer, "Kubernetes ")
	if _, err := version.ParseSemantic(release); err != nil {
		return nil, fmt.Errorf("kube-apiserver says that it is %q, which is no release of Kubernetes", found.APIServer)
	}
	config, stop, err := found.Run(cmp.Or(s.StartTimeout, time.Minute), nil)
	if err != nil {
		return nil, err
	}
	known := &suite.Cluster{Name: s.String(), Config: config, Release: release}
	client, err := kubernetes.NewForConfig(config)
	if err == nil {
		err = untilDefaultRoles(ctx, client)
	}
	if err == nil {
		known.Ledger, err = ledger.New(config)
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	Learn(ctx, known)
	return &programs{known, s.Folder, client, stop}, nil
}

// Check implements engine.Target.
func (p *programs) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := p.client.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		return fmt.Errorf("the kube-apiserver of %s does not answer: %w", p.folder, err)
	}
	return nil
}

// Close implements engine.Target.
func (p *programs) Close(context.Context) error { return p.stop() }
