// Package client gives tests control planes that run in another process: one
// "snowglobe serve" for all packages of a "go test ./...", which the first test starts
// and which ends soon after the last. It links none of the API server, so that a test
// binary is small and quick to link, where one that imports envtest takes seconds for
// each package. A control plane is one test's own; the next test gets it as it was
// right after boot, in milliseconds.
//
// Time is real here, and the control plane is out of reach but for its API, faults and
// log: tests in virtual time, with held hooks or their own webhooks in memory, use
// envtest.
//
// The program is built from the module that the test is in, which must require it:
//
//	go mod edit -tool=snowglobe.test/cmd/snowglobe && go mod tidy
//
// Two environment variables change that. SNOWGLOBE names a program to start instead;
// SNOWGLOBE_SOCKET names the socket of a server that runs already, as after
// "snowglobe serve --socket FILE", and then none is started.
package client
