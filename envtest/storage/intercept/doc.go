// Package intercept owns what lies between an API server and its store: the one
// decorator of its etcd client, where rules meet operations and watch events, where
// a partition keeps both waiting, and where they end with the server's process. A
// Proxy does the same for etcd clients that others make. It never decides what
// becomes of an operation, and knows of what is stored only where the keys begin.
package intercept
