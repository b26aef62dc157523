// Package bench measures control planes: how long they take to start and stop,
// compared to controller-runtime's envtest on real binaries, and how long watch events
// take to reach many watchers. It owns the loads, the measurement and the reports. It
// never judges what the API server answers, with one exception: a watch event that is
// lost, repeated or out of order fails the measurement, because numbers from a broken
// load mean nothing.
package bench
