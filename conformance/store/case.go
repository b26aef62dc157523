// Package store owns the promises that Kubernetes needs of a store, each with a test, and the T that
// the tests are given. It reaches the store only through clients, writes only below a prefix of its
// own, and never starts or stops a store.
package store

import (
	"embed"
	"fmt"
	"strings"

	"snowglobe.test/conformance/engine"
)

// Case is a promise of a store and its test. The first part of its ID is its area.
type Case = engine.Case[*T]

// The levels.
const (
	// Kubernetes promises are those that an API server of the linked release relies on.
	Kubernetes engine.Level = "kubernetes"
	// Etcd promises are those that etcd makes besides, on which etcdctl and others rely.
	Etcd engine.Level = "etcd"
)

// System is the field System of all cases.
const System = "store"

// compacts is what a case needs that compacts the history, which all clients of the store share.
var compacts = engine.Needs{Compaction: true}

//go:embed *.go
var sources embed.FS

// areas are the parts of the suite, in the order in which they run.
var areas = []struct {
	level engine.Level
	cases []Case
}{
	{Kubernetes, kvCases},
	{Kubernetes, pagingCases},
	{Kubernetes, txnCases},
	{Kubernetes, leaseCases},
	{Kubernetes, watchCases},
	{Kubernetes, streamCases},
	{Kubernetes, progressCases},
	{Kubernetes, compactionCases},
	{Kubernetes, consistencyCases},
	{Kubernetes, maintenanceCases},
	{Etcd, etcdKVCases},
	{Etcd, etcdTxnCases},
	{Etcd, etcdCompactionCases},
	{Etcd, etcdWatchCases},
	{Etcd, etcdLeaseCases},
}

// Cases returns all cases, area by area.
func Cases() []Case {
	var all []Case
	for _, area := range areas {
		for _, c := range area.cases {
			c.System, c.Level, c.Sources = System, area.level, sources
			c.Area, _, _ = strings.Cut(c.ID, "/")
			all = append(all, c)
		}
	}
	return all
}

// Of returns the cases of a level; Etcd has those of Kubernetes too.
func Of(level engine.Level) ([]Case, error) {
	if level != Kubernetes && level != Etcd {
		const unknown = "select cases: level %q is not known; use %q, or %q for those and more"
		return nil, fmt.Errorf(unknown, level, Kubernetes, Etcd)
	}
	var cases []Case
	for _, c := range Cases() {
		if level == Etcd || c.Level == level {
			cases = append(cases, c)
		}
	}
	return cases, nil
}
