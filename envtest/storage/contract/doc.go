// Package contract runs the contract that every kind of store passes: all of upstream's
// storage tests (k8s.io/apiserver/pkg/storage/testing), on an etcd3 store and on a watch
// cache in front of one, as in the API server. It never decides what is right; upstream's
// code does.
package contract
