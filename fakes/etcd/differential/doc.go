// Package differential runs the same operations on an embedded etcd and on the
// in-memory one, and compares their answers field by field. It owns the generator,
// which turns any string of bytes into operations, and the comparison. It never looks
// behind a client: the systems it compares are clientv3 clients of stores that began
// empty.
package differential
