// Package report owns the pictures of a trace: a page with swim lanes, in one HTML
// file that asks nobody for anything, and the same lanes in the trace event format
// that ui.perfetto.dev and chrome://tracing open.
//
// It reads records and never makes one, and it knows no servers and no scripts. What
// it takes from a script is a form of notes: one that begins with "# " opens a phase,
// and one that begins with "> " is a command.
package report
