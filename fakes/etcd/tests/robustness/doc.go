// Package robustness runs etcd's own robustness tests on the in-memory etcd.
// It records upstream's traffic in process and over gRPC, and upstream's
// validators judge the record: operations must be linearizable, and watches
// keep every guarantee that etcd gives. Stores that lie, each in one way,
// show that the validators notice. It owns neither the traffic, the model nor
// the validators: all are of go.etcd.io/etcd/tests.
package robustness
