// Package trace owns the record of what happened: a closed set of typed
// events, the recorder that puts them in order, and their text and JSON forms.
//
// It only records. It never makes anything happen, decides nothing, and knows
// no servers. Time is whatever package time says, which is virtual inside a
// testing/synctest bubble.
package trace
