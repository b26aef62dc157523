package suite

import (
	"cmp"
	"context"
	"hash/fnv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/ledger"
)

// Cluster is a running API server to test.
type Cluster struct {
	// Name identifies it for people.
	Name string
	// Config is for a user with all permissions.
	Config *rest.Config
	// Servers are configurations like Config for the API servers one by one, if they can be
	// told apart. A case asks one of them.
	Servers []*rest.Config
	// Release is what /version must report, like "v1.37.1". Empty means unknown.
	Release string
	// Reported is the release that /version reports. Empty means that it does not.
	Reported string
	// Minor is the minor release whose promises the server keeps, like "1.37": that which it
	// reports, or that of Release. Empty means unknown.
	Minor string
	// Gates are the server's feature gates. A case is not run if one of its own is missing.
	Gates map[string]bool
	// Launcher starts further control planes of the same kind. Nil means that none can be
	// started.
	Launcher *Launcher
	// Wrap, if not nil, wraps the transport of this cluster and of those it launches.
	Wrap transport.WrapperFunc
	// PollInterval is how often a case polls what can't be watched. Zero means 50 ms.
	PollInterval time.Duration
	// Ledger has what cases make on the cluster, and removes it. Nil means that nobody else is
	// bothered by it.
	Ledger *ledger.Ledger
}

// String implements engine.Target, and so do the methods below: of a cluster that needs no closing.
func (c *Cluster) String() string { return c.Name }

// Reports is described at String.
func (c *Cluster) Reports() string { return cmp.Or(c.Reported, c.Release) }

// Notice is described at String.
func (c *Cluster) Notice([]engine.Info) string { return "" }

// Check is described at String.
func (c *Cluster) Check(context.Context) error { return nil }

// Close is described at String.
func (c *Cluster) Close(context.Context) error { return nil }

// serving returns the cluster as a case sees it: of several servers, always the same one.
func (c *Cluster) serving(id string) *Cluster {
	if len(c.Servers) < 2 {
		return c
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id))
	one := *c
	one.Config = c.Servers[hash.Sum32()%uint32(len(c.Servers))]
	return &one
}

// page begins a page of the ledger for a case, nil if there is none.
func (c *Cluster) page(id string) *ledger.Page {
	if c.Ledger == nil {
		return nil
	}
	return c.Ledger.Page(id)
}
