package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"k8s.io/component-base/version"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/linked"
	"snowglobe.test/envtest/serverflags"
	"snowglobe.test/envtest/storage/external"
)

// playAPIServer acts as the program kube-apiserver: it runs an API server on the etcd and the port
// and with the certificates that the flags name.
func playAPIServer(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	process, err := serverflags.ParseProcess(args)
	switch {
	case err != nil:
		return err
	case process.Help:
		fmt.Fprintf(stdout, "This is Snowglobe's kube-apiserver %s.\n\nUsage:\n  kube-apiserver [flags]\n",
			linked.Release())
		serverflags.Print(stdout, columns(stdout))
		return nil
	case process.Version == "raw":
		info := version.Get() // upstream's version of this program, as far as it is known
		info.GitVersion, info.GitTreeState = linked.Release(), "clean"
		_, err := fmt.Fprintf(stdout, "%#v\n", info)
		return err
	case process.Version != "":
		_, err := fmt.Fprintln(stdout, "Kubernetes", linked.Release())
		return err
	}
	if err := process.Validate(); err != nil {
		return err
	}
	options, err := apiServerOptions(process)
	if err != nil {
		return err
	}
	cp, err := envtest.Launch(ctx, append(options, envtest.WithLog(stderr), envtest.WithTimeouts(standInPatience, 0))...)
	if ctx.Err() != nil && cp == nil {
		return nil // it was ended while it started, which is no failure
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

// standInPatience is in effect no limit: a kube-apiserver that is not ready goes on trying, and
// its parent process decides for how long.
const standInPatience = 24 * time.Hour

// apiServerOptions turns the flags about the store and the listener, which envtest sets up itself,
// into options, and passes the other flags on.
func apiServerOptions(process *serverflags.Process) ([]envtest.Option, error) {
	store, err := external.New(external.Config{
		URLs: process.EtcdServers, CAFile: process.EtcdCAFile, CertFile: process.EtcdCertFile, KeyFile: process.EtcdKeyFile,
	})
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(cmp.Or(process.BindAddress, "127.0.0.1"), strconv.Itoa(process.SecurePort))
	return []envtest.Option{
		envtest.WithStore(store), envtest.WithListener(address),
		envtest.WithFlags(append([]string{withoutFrontProxy}, process.Flags...)...),
	}, nil
}

// withoutFrontProxy turns off the front-proxy authority that envtest sets up: a kube-apiserver
// trusts one only if its flags say so.
const withoutFrontProxy = "--requestheader-client-ca-file="
