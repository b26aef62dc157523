// Package etcdctl owns sessions of etcdctl, commands and their output in
// testdata, and tests that an embedded etcd and the in-memory one both give
// exactly that output. It owns nothing else: etcdctl is upstream's.
package etcdctl
