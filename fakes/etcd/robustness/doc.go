// Package robustness runs etcd's own robustness tests on the in-memory etcd. It
// records upstream's traffic in process and over gRPC, and upstream's validators
// judge the record: the operations must be linearizable, and the watches must keep
// every guarantee that etcd gives. Stores that lie, each in one way, show that the
// validators would notice.
//
// It consists of tests, and owns neither the traffic, the model nor the
// validators: all three are those of go.etcd.io/etcd/tests.
package robustness
