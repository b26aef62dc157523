package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"

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

// String implements Source.
func (s Stock) String() string { return "stock kube-apiserver and etcd" }

// Open implements Source.
func (s Stock) Open(ctx context.Context) (*suite.Cluster, error) {
	programs, err := stock.Find(ctx, s.Folder)
	if err != nil {
		return nil, err
	}
	release := strings.TrimPrefix(programs.APIServer, "Kubernetes ")
	if _, err := version.ParseSemantic(release); err != nil {
		return nil, fmt.Errorf("kube-apiserver says that it is %q, which is no release of Kubernetes", programs.APIServer)
	}
	config, stop, err := programs.Run(cmp.Or(s.StartTimeout, time.Minute), nil)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err == nil {
		err = untilDefaultRoles(ctx, client)
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return &suite.Cluster{
		Name: s.String(), Config: config, Release: release,
		Check: func(ctx context.Context) error { return s.check(ctx, client) },
		Close: func(context.Context) error { return stop() },
	}, nil
}

// check says why no further case can be judged, nil if they can.
func (s Stock) check(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := client.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		return fmt.Errorf("the kube-apiserver of %s does not answer: %w", s.Folder, err)
	}
	return nil
}
