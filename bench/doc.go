// Package bench measures control planes: how long watch events take to reach many watchers, and
// whatever else their users wait for. It owns on which hosts, how often and at which rates loads are
// run; a load itself is in package load, the reports are in package results, and how long control
// planes take to start and stop is in package startup. It never judges what the API server answers,
// except that a watch event lost, repeated or out of order fails the measurement: numbers from a
// broken load mean nothing.
package bench
