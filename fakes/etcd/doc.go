// Package etcd is an in-memory etcd v3 with the semantics of the etcd release
// that its client library belongs to.
//
// It owns one multi-version key space with its leases, watches, compaction and
// snapshots. Clients reach it in two ways: in the same process, with nothing
// serialized, or over gRPC on any listener, next to which HTTP/1 answers for
// health, version and metrics. The server waits only on channels and timers that
// it made itself, so that a server made in a testing/synctest bubble lives in
// the bubble's time.
//
// It never persists anything, never polls, opens no socket of its own, and
// knows nothing of Kubernetes beyond the client interface etcd defines for it.
package etcd
