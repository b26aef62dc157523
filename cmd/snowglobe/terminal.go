package main

import (
	"io"
	"os"
)

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// wantsColor reports whether to write colours to w; see https://no-color.org.
func wantsColor(w io.Writer) bool { return isTerminal(w) && os.Getenv("NO_COLOR") == "" }

// paint wraps text in an ANSI code.
func paint(color bool, code, text string) string {
	if !color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// ANSI codes.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)
