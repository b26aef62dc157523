// Package bench measures control planes: how long watch events take to reach many watchers, and
// whatever else their users wait for. It owns the loads, the measurement and the reports; how long
// control planes take to start and stop is in package startup. It
// never judges what the API server answers, except that a watch event lost, repeated
// or out of order fails the measurement: numbers from a broken load mean nothing.
package bench
