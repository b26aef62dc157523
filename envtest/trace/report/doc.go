// Package report owns the pictures of a trace: a page with swim lanes, in one HTML
// file that makes no request, and the same lanes in the trace event format
// that ui.perfetto.dev and chrome://tracing open.
//
// It reads records and never makes one, and it knows no servers and no scripts. What it
// takes from them is a form of notes: one that begins with "# " opens a phase, one that
// begins with "> " is a command, and "NAME crashed: WHY" tells of the end of a program.
// Boots of servers, and their end after a script, are narrow on the page until opened.
package report
