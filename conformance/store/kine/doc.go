// Package kine judges kine with sqlite, beside etcd and the store in memory, and owns the page
// that has the results, docs/reference/stores.md. It is a module of its own because kine
// requires much that this project does not, and a C compiler. It never runs kine for anybody
// else.
package kine
