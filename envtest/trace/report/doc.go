// Package report owns the pictures of a trace: a page with swim lanes, in one HTML
// file that makes no request, and the same lanes in the trace event format
// that ui.perfetto.dev and chrome://tracing open.
//
// It reads records and never makes one, and it knows no servers and no scripts. It only
// relies on how their notes begin: "# " opens a phase, "> " is a command, and
// "NAME crashed: WHY" is the end of a program. Boots of servers, and their end after a
// script, are folded into narrow strips on the page until opened.
package report
