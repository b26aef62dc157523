package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
)

// refusedEtcdFlags are those that a client would miss.
var refusedEtcdFlags = []string{
	"auto-tls", "cert-file", "client-cert-auth", "client-crl-file", "key-file", "listen-client-http-urls", "trusted-ca-file",
	"discovery", "discovery-srv", "initial-cluster-state", "config-file", "auth-token",
}

// playEtcd is an etcd of one member, in memory, at its client URLs. Flags about disks,
// peers and logs mean nothing to it.
func playEtcd(ctx context.Context, args []string, stdout, _ io.Writer) error {
	config := embed.NewConfig()
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	config.AddFlags(flags)
	flags.String("config-file", "", "Not supported in memory.")
	flags.String("initial-cluster-state", "", "Only new, in memory.")
	printVersion := flags.Bool("version", false, "Print the version and exit.")
	flags.SetOutput(stdout)
	flags.Usage = func() {
		fmt.Fprint(stdout, "This is Snowglobe's in-memory etcd: flags about disks, peers and logs have no effect.\n\nUsage:\n")
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("%q is not a valid flag", flags.Arg(0))
	case *printVersion:
		_, err := fmt.Fprintln(stdout, "etcd Version:", version.Version)
		return err
	}
	if err := refuseEtcdFlags(flags); err != nil {
		return err
	}
	at, err := clientURL(flags.Lookup("listen-client-urls").Value.String())
	if err != nil {
		return err
	}
	address, err := net.ResolveTCPAddr("tcp", at.Host)
	if err != nil {
		return err
	}
	return failed(serveEtcd(ctx, io.Discard, io.Discard, address))
}

func refuseEtcdFlags(flags *flag.FlagSet) (err error) {
	flags.Visit(func(f *flag.Flag) {
		isNew := f.Name == "initial-cluster-state" && f.Value.String() == "new"
		if slices.Contains(refusedEtcdFlags, f.Name) && !isNew {
			err = fmt.Errorf("an etcd in memory can't honour --%s; remove it, or run a real etcd", f.Name)
		}
	})
	return err
}

// clientURL is the one URL, without TLS, that the etcd listens on.
func clientURL(list string) (*url.URL, error) {
	urls, err := types.NewURLs(strings.Split(list, ","))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--listen-client-urls: %w", err)
	case len(urls) != 1:
		return nil, fmt.Errorf("--listen-client-urls %s: an etcd in memory listens on one URL", list)
	case urls[0].Scheme != "http":
		return nil, fmt.Errorf("--listen-client-urls %s: an etcd in memory has no TLS; use http", list)
	}
	return &urls[0], nil
}
