// Package keyspace is the store of the in-memory etcd: keys with their revisions,
// leases, watchers, transactions, compaction and snapshots, and the alarms that
// forbid writes. Its requests and answers are the messages of etcd's API, whose
// unary methods have their names here.
//
// It knows no client and no connection. Who serves it has it deliver to functions,
// and join what must not outlive it.
package keyspace
