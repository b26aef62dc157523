// Package client makes clients of the in-memory etcd for the same process: with
// nothing serialized, and with nothing in between for what an API server does most.
// What it does with unexported parts of clientv3 is in reach.go.
//
// It keeps no state of the store, and knows the services only as a connection.
package client
