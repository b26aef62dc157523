// Package stock holds nothing but a test: all fakes together, over sockets, around a
// kube-apiserver that is a program of its own.
package stock
