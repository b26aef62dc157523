package aggregated_test

import (
	"context"
	"fmt"
	"log"
	"net"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"snowglobe.test/fakes/aggregated"
	"snowglobe.test/fakes/stub"
)

// An API server for one group, which falls ill.
func Example() {
	ctx := context.Background()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server, err := aggregated.Serve(l, aggregated.Config{Resources: []aggregated.Resource{
		{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true},
	}})
	if err != nil {
		log.Fatal(err)
	}

	// A kube-apiserver would be told of the URL and the CA by a Service and an
	// APIService.
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL(), TLSClientConfig: rest.TLSClientConfig{CAData: server.CA()}})
	if err != nil {
		log.Fatal(err)
	}
	widgets := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Namespace("default")
	_, err = widgets.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "first"},
	}}, metav1.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	list, err := widgets.List(ctx, metav1.ListOptions{})
	fmt.Println(len(list.Items), err)

	server.Requests.Reply(nil, stub.Status{Code: 503})
	_, err = widgets.List(ctx, metav1.ListOptions{})
	fmt.Println(err)
	for _, call := range server.Requests.Calls() {
		fmt.Println(call.Request.Verb, call.Request.Resource, call.Err)
	}
	if err := server.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 <nil>
	// the server is currently unable to handle the request
	// create widgets <nil>
	// list widgets <nil>
	// list widgets HTTP 503 Service Unavailable
}
