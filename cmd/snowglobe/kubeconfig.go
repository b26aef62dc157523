package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// dialTimeout is how long the server of an old kubeconfig may take to accept a
// connection; it is on loopback.
const dialTimeout = time.Second

// clearKubeconfig removes a kubeconfig that a killed control plane has left at path. It
// returns an error if anything else is there, or if the folder does not exist.
func clearKubeconfig(ctx context.Context, path string) error {
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return fmt.Errorf("kubeconfig: %s already exists and was not written by snowglobe (%w); name another file with --kubeconfig", path, err)
	}
	cluster := config.Clusters["snowglobe"]
	if cluster == nil || len(config.Clusters) != 1 || config.CurrentContext != "snowglobe" {
		return fmt.Errorf("kubeconfig: %s already exists and was not written by snowglobe; name another file with --kubeconfig", path)
	}
	server, err := url.Parse(cluster.Server)
	if err != nil {
		return fmt.Errorf("kubeconfig: %s: %w", path, err)
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	if conn, err := dialer.DialContext(ctx, "tcp", server.Host); err == nil {
		_ = conn.Close()
		return fmt.Errorf("kubeconfig: %s belongs to a control plane that is up at %s; stop that one, or name another file with --kubeconfig", path, cluster.Server)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("kubeconfig: remove the leftover of a control plane that is gone: %w", err)
	}
	return nil
}
