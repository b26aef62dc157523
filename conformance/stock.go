package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/conformance/suite"
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
	folder, err := filepath.Abs(s.Folder)
	if err != nil {
		return nil, err
	}
	release, err := s.release(ctx, folder)
	if err != nil {
		return nil, err
	}
	config, stop, err := runStock(folder, cmp.Or(s.StartTimeout, time.Minute))
	if err != nil {
		return nil, fmt.Errorf("run the programs in %s: %w", folder, err)
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

// stockPrograms are those in the folder.
var stockPrograms = []string{"kube-apiserver", "etcd"}

// release makes sure that the programs are there, and returns the release of kube-apiserver.
func (s Stock) release(ctx context.Context, folder string) (string, error) {
	for _, name := range stockPrograms {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || !info.Mode().IsRegular() {
			return "", fmt.Errorf("there is no program %s in %s; build it as docs/HACKING.md says", name, folder)
		}
	}
	told, err := exec.CommandContext(ctx, filepath.Join(folder, stockPrograms[0]), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", stockPrograms[0], err)
	}
	name := strings.TrimSpace(string(told))
	release := strings.TrimPrefix(name, "Kubernetes ")
	if _, err := version.ParseSemantic(release); err != nil {
		return "", fmt.Errorf("%s says that it is %q, which is no release of Kubernetes", stockPrograms[0], name)
	}
	return release, nil
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
