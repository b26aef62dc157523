// Package keyspace is the store of the in-memory etcd: keys with their revisions,
// leases, watchers, transactions, compaction and snapshots, and the alarms that
// forbid writes. Its requests and answers are the messages of etcd's API, and its
// methods have the names of the unary methods there.
//
// It knows no client and no connection. A server passes functions to which watchers
// deliver, and starts with Store.Go the goroutines that must not outlive the store.
package keyspace
