// Package etcd is an in-memory etcd v3 with the semantics of the etcd release
// its client library belongs to.
//
// It owns one multi-version key space with its leases, watches, compaction and
// snapshots, and two doors to it: clients in the same process, for which
// nothing is serialized, and a gRPC server on any listener. Everything that
// waits does so on channels and timers made by the server itself, so a server
// made inside a testing/synctest bubble lives in that bubble's time.
//
// It never persists anything, never polls, opens no socket of its own, and
// knows nothing of Kubernetes beyond the client interface etcd defines for it.
package etcd
