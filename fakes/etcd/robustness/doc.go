// Package robustness holds the in-memory etcd to etcd's own robustness tests:
// upstream's traffic is recorded in process and over gRPC, and upstream's validators
// judge the record: the operations must be linearizable, and the watches must
// keep every guarantee etcd gives. Stores that lie, one lie each, show that the
// validators would notice.
//
// It consists of tests, and owns neither the traffic, the model nor the
// validators: all three are those of go.etcd.io/etcd/tests.
package robustness
