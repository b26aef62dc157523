// Package services serves the store of the in-memory etcd as etcd's client port
// does: the gRPC services, and over HTTP/1 health, version and metrics. The same
// services are a connection for clients in the process.
//
// It keeps no keys: what it has of its own is the list of members.
package services
