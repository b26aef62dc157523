// Package intercept owns what lies between an API server and its store: the one
// decorator of the server's etcd client, where rules meet each operation and each
// event of a watch, where a partition keeps both waiting, and where they end with
// the server's process. A Proxy does the same for etcd clients that others make. It
// never decides what becomes of an operation, and knows of what is stored only where
// its keys begin.
package intercept
