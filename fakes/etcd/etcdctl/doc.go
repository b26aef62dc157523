// Package etcdctl holds sessions of etcdctl (commands and their output) and tests
// that an embedded etcd and the in-memory one both give exactly that output.
//
// It owns the sessions in testdata and nothing else: etcdctl is upstream's.
package etcdctl
