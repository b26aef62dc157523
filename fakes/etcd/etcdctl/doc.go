// Package etcdctl holds sessions of etcdctl, commands with what they print, and
// tests that an embedded etcd and the in-memory one both answer them to the
// letter.
//
// It owns the sessions in testdata and nothing else: etcdctl is upstream's.
package etcdctl
