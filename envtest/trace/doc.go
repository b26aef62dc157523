// Package trace owns the record of what happened: a closed set of typed events,
// the recorder that puts them in order, and their text and JSON forms.
//
// It makes nothing happen, decides nothing, and knows no servers. Time is what
// package time says, which is virtual inside a testing/synctest bubble.
package trace
