package stock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"snowglobe.test/internal/gobuild"
	"snowglobe.test/internal/releases"
)

// Build builds both programs into a folder, at the releases of the module of the current folder,
// which the go command finds. progress is told how far it is: without a build cache it takes
// minutes.
func Build(ctx context.Context, folder string, progress io.Writer) (Programs, error) {
	release, err := release(ctx)
	if err != nil {
		return Programs{}, fmt.Errorf("build a stock %s: %w", apiServer, err)
	}
	for _, each := range []struct{ name, flags string }{{apiServer, releases.Stamp(release)}, {etcd, "-s -w"}} {
		p := Programs{Folder: folder}
		command := exec.CommandContext(ctx, "go", "build", "-ldflags", each.flags, "-o", p.path(each.name), packages[each.name])
		if err := gobuild.Build(command, "a stock "+each.name, progress); err != nil {
			return Programs{}, fmt.Errorf("build a stock %s: %w", each.name, err)
		}
	}
	return Find(ctx, folder)
}

// release is that of Kubernetes in the module of the current folder.
func release(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("this is to be in the folder of a module that requires k8s.io/kubernetes; or give a folder with the programs: %s", strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}
