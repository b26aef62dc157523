// Package etcd is an in-memory etcd v3, with the semantics of the release of its
// client library. It owns one multi-version key space with its leases, watches,
// compaction and snapshots. Clients reach it in the same process, with nothing
// serialized, or over gRPC on any listener, where HTTP/1 answers for health,
// version and metrics. It waits only on channels and timers it made itself, so
// that one made in a testing/synctest bubble lives in the bubble's time.
//
// It never persists anything, never polls, opens no socket of its own, and knows
// nothing of Kubernetes beyond the client interface that etcd defines for it.
package etcd
