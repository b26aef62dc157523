// Package bench measures control planes: how long one takes to start and stop,
// next to controller-runtime's envtest on real binaries, and how long watch
// events take to reach many watchers. It owns the loads, the measurement and the
// reports. It never judges what the API server answers, except that a watch
// event which is lost, repeated or out of order fails the measurement: a number
// from a broken load is worth nothing.
package bench
