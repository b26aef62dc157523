// Package disk stands between a real etcd in this process and its disk: it says who uses a data
// folder and whether the disk suffices, and it ends the etcd, not the process, when the disk
// fails. It knows nothing of stores, and writes nothing but its lock and a probe.
package disk
