package client

import (
	"fmt"
	"reflect"
	"unsafe"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Everything in this package that uses unexported parts of clientv3 is in this
// file. reach_test.go fails when a field is gone.

// neverDone is what the contexts of clientv3's watches over gRPC wait for: a channel that is never
// closed, made before any testing/synctest bubble, in which what waits for it keeps time from going
// on. A nil channel says the same.
//
//go:linkname neverDone go.etcd.io/etcd/client/v3.valCtxCh
var neverDone chan struct{}

func init() { neverDone = nil }

// setEndpoints sets what c reports, and lets SetEndpoints work without a connection.
func setEndpoints(c *clientv3.Client, endpoints ...string) {
	v := reflect.ValueOf(c).Elem()
	resolver := settable(v, "resolver")
	resolver.Set(reflect.New(resolver.Type().Elem()))
	settable(v, "endpoints").Set(reflect.ValueOf(endpoints))
}

// failedWatch returns the response that ends a watch with err.
func failedWatch(err error) clientv3.WatchResponse {
	resp := clientv3.WatchResponse{Header: &pb.ResponseHeader{}, Canceled: true}
	settable(reflect.ValueOf(&resp).Elem(), "closeErr").Set(reflect.ValueOf(err))
	return resp
}

// failedStream returns the response that ends a range stream with err.
func failedStream(err error) clientv3.RangeStreamResponse {
	var resp clientv3.RangeStreamResponse
	settable(reflect.ValueOf(&resp).Elem(), "closeErr").Set(reflect.ValueOf(err))
	return resp
}

// settable returns an unexported field of the addressable struct v, ready to be set.
func settable(v reflect.Value, name string) reflect.Value {
	f := v.FieldByName(name)
	if !f.IsValid() {
		panic(fmt.Sprintf("clientv3: %s has no field %q any more; adapt reach.go", v.Type(), name))
	}
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}
