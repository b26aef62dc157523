// Package stock runs a stock kube-apiserver with its etcd: programs that a user has built, or
// that it builds of this module's releases. It never looks at what they answer.
package stock
