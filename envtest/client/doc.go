// Package client gives tests control planes that run in another process: one
// "snowglobe serve" for all packages of a "go test ./...", which the first test starts
// and which ends soon after the last. It links nothing of the API server, so a test binary
// is small and quick to link, whereas one that imports envtest takes seconds per package.
// A control plane belongs to one test at a time; the next test gets it as it was right
// after boot, within milliseconds.
//
// Time is real here, and the control plane's API, rules, states, trace and log are within
// reach: tests that need virtual time, or their own webhooks in memory, use envtest.
//
// The Go module of this package requires an old client-go, and nothing of the API server, so your
// module can require it and keep its versions of the k8s.io modules. The snowglobe program is
// that of the same release. The first test builds it, with the program's own requirements, and
// keeps it in the user's cache folder.
//
// Two environment variables change that. SNOWGLOBE names a program to start instead;
// SNOWGLOBE_SOCKET names the socket of a server that is already running, as after
// "snowglobe serve --socket FILE", and then none is started.
package client
