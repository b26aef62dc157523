package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/serverflags"
	"snowglobe.test/envtest/storage/external"
)

// playAPIServer is kube-apiserver: on the etcd, the port and with the certificates that
// its flags name.
func playAPIServer(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	switch {
	case slices.Contains(args, "--help") || slices.Contains(args, "-h"):
		fmt.Fprintf(stdout, "This is Snowglobe's kube-apiserver %s.\n\nUsage:\n  kube-apiserver [flags]\n", envtest.Release())
		serverflags.Print(stdout, columns(stdout))
		return nil
	case slices.Contains(args, "--version"):
		_, err := fmt.Fprintln(stdout, "Kubernetes", envtest.Release())
		return err
	}
	options, err := apiServerOptions(args)
	if err != nil {
		return err
	}
	cp, err := envtest.Launch(ctx, append(options, envtest.WithLog(stderr), envtest.WithTimeouts(standInPatience, 0))...)
	if ctx.Err() != nil && cp == nil {
		return nil // whoever has ended it knows
	}
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-cp.Crashed():
	}
	return errors.Join(cp.Stop(context.WithoutCancel(ctx)), cp.Err())
}

// standInPatience is no limit: a kube-apiserver that is not ready goes on trying, and
// whoever has started it decides for how long.
const standInPatience = 24 * time.Hour

// apiServerOptions turns the flags that belong to the harness into what it does instead.
func apiServerOptions(args []string) ([]envtest.Option, error) {
	taken, flags := takeFlags(args, "etcd-servers", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "secure-port", "bind-address", "cert-dir")
	if taken["etcd-servers"] == "" {
		return nil, errors.New("--etcd-servers must be specified")
	}
	store, err := external.New(external.Config{
		URLs:   strings.Split(taken["etcd-servers"], ","),
		CAFile: taken["etcd-cafile"], CertFile: taken["etcd-certfile"], KeyFile: taken["etcd-keyfile"],
	})
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(cmp.Or(taken["bind-address"], "127.0.0.1"), cmp.Or(taken["secure-port"], "6443"))
	return []envtest.Option{
		envtest.WithStore(store), envtest.WithListener(address), envtest.WithFlags(append(certificateFlags(taken["cert-dir"]), flags...)...),
	}, nil
}

// certificateFlags name the certificate in kube-apiserver's folder, if there is one.
func certificateFlags(dir string) []string {
	cert, key := filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key")
	if _, err := os.Stat(cert); dir == "" || err != nil {
		return nil
	}
	return []string{"--tls-cert-file=" + cert, "--tls-private-key-file=" + key}
}
