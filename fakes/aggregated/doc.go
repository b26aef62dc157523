// Package aggregated is a fake of an API server to which kube-apiserver's aggregation
// layer proxies: discovery, OpenAPI and all verbs for resources that are a table, with
// objects of any form in memory. It owns the objects, their history and the record of
// who asked for what.
//
// Rules in the server's table of requests make it misbehave. A rule that answers with a
// stub.Status makes it unavailable, sends its clients elsewhere or answers in a wrong
// form:
//
//	server.Requests.Reply(nil, stub.Status{Code: 503})
//	server.Requests.Reply(nil, stub.Status{Code: 302, Header: http.Header{"Location": {"https://elsewhere"}}})
//	server.Requests.Reply(nil, stub.Status{Code: 200, Header: http.Header{"Content-Type": {"text/html"}}})
//
// It never converts, defaults or validates what is in an object below its metadata,
// knows neither protobuf nor server-side apply, and decides nothing by who asks.
package aggregated
