// Package services serves the store of the in-memory etcd as etcd's client port
// does: the gRPC services, and over HTTP/1 health, version and metrics. Clients in the
// process can call the services directly, through LocalConn.
//
// It keeps no keys. The only state of its own is the list of members.
package services
