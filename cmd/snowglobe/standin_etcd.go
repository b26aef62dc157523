package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/client/pkg/v3/tlsutil"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	etcdflags "go.etcd.io/etcd/pkg/v3/flags"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// refusedEtcdFlags are those that a client would miss.
var refusedEtcdFlags = []string{
	"listen-client-http-urls", "discovery-token", "discovery-endpoints", "discovery-srv", "initial-cluster-state", "config-file", "auth-token",
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
		fmt.Fprint(stdout, etcdUsages(flags))
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return &etcdFlagError{err}
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
	address, err := clientAddress(at)
	if err != nil {
		return err
	}
	files, err := clientTLS(config, flags, at)
	if err != nil {
		return err
	}
	return serveEtcd(ctx, io.Discard, io.Discard, address, files)
}

// etcdUsages lists the flags. Go's own PrintDefaults also prints a panic, because it asks
// for a feature gate that is zero.
func etcdUsages(flags *flag.FlagSet) string {
	all := pflag.NewFlagSet("etcd", pflag.ContinueOnError)
	all.AddGoFlagSet(flags)
	return all.FlagUsagesWrapped(100)
}

// etcdFlagError is about flags that can't be parsed.
type etcdFlagError struct{ error }

func refuseEtcdFlags(flags *flag.FlagSet) (err error) {
	flags.Visit(func(f *flag.Flag) {
		isNew := f.Name == "initial-cluster-state" && f.Value.String() == "new"
		if slices.Contains(refusedEtcdFlags, f.Name) && !isNew {
			err = fmt.Errorf("an etcd in memory can't honour --%s; remove it, or run a real etcd", f.Name)
		}
	})
	return err
}

// clientURL is the one URL that the etcd listens on.
func clientURL(list string) (*url.URL, error) {
	urls, err := types.NewURLs(strings.Split(list, ","))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--listen-client-urls: %w", err)
	case len(urls) != 1:
		return nil, fmt.Errorf("--listen-client-urls %s: an etcd in memory listens on one URL", list)
	case urls[0].Scheme == "unixs":
		return nil, fmt.Errorf("--listen-client-urls %s: an etcd in memory has no TLS on unix sockets; use unix", list)
	}
	return &urls[0], nil
}

// clientAddress is where the etcd listens: as all of Snowglobe, on loopback or a socket.
func clientAddress(at *url.URL) (net.Addr, error) {
	if at.Scheme == "unix" {
		return net.ResolveUnixAddr("unix", at.Host+at.Path)
	}
	address, err := net.ResolveTCPAddr("tcp", at.Host)
	if err == nil && !address.IP.IsLoopback() {
		return nil, fmt.Errorf("--listen-client-urls %s is not on loopback; use 127.0.0.1", at)
	}
	return address, err
}

// clientTLS is the TLS that flags give the client URL. Without https they have no effect.
func clientTLS(config *embed.Config, set *flag.FlagSet, at *url.URL) (info transport.TLSInfo, err error) {
	if at.Scheme != "https" {
		return info, nil
	}
	info = config.ClientTLSInfo
	asks := info.TrustedCAFile != "" || info.ClientCertAuth
	switch {
	case info.Empty() && !config.ClientAutoTLS:
		return info, fmt.Errorf("--listen-client-urls %s: https needs --cert-file and --key-file, or --auto-tls", at)
	case info.Empty() && asks:
		return info, errors.New("--auto-tls makes a certificate for the server alone; give --cert-file and --key-file to ask clients for theirs")
	case info.Empty():
		folder := filepath.Join(cmp.Or(config.Dir, config.Name+".etcd"), "fixtures", "client")
		if info, err = transport.SelfCert(zap.NewNop(), folder, []string{at.Host}, config.SelfSignedCertValidity); err != nil {
			return info, fmt.Errorf("--auto-tls: %w", err)
		}
	}
	info.AllowedHostnames = etcdflags.StringsFromFlag(set, "client-cert-allowed-hostname")
	var errs [3]error
	info.MinVersion, errs[0] = tlsutil.GetTLSVersion(config.TlsMinVersion)
	info.MaxVersion, errs[1] = tlsutil.GetTLSVersion(config.TlsMaxVersion)
	info.CipherSuites, errs[2] = tlsutil.GetCipherSuites(etcdflags.StringsFromFlag(set, "cipher-suites"))
	return info, errors.Join(append(errs[:], checkEtcdTLS(info))...)
}
