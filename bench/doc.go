// Package bench measures control planes: how long they take to start and stop,
// compared to controller-runtime's envtest on real binaries, and how long watch events
// take to reach many watchers. It owns the loads, the measurement and the reports. It
// never judges what the API server answers, except that a watch event lost, repeated
// or out of order fails the measurement: numbers from a broken load mean nothing.
package bench
