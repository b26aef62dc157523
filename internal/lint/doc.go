// Package lint checks the repository against its own rules: which packages may
// import which, whose tests link the server, what go.mod must contain, how long a
// file may be, how many names the face has, that every package has a comment, what no
// text may mention, that links and snippets in documents are good, how tests assert,
// and what lies at the top. Each rule is a function of a file tree; a test runs it on this repository
// and on small trees that break it. It only reads files, runs no command and loads no
// package, so it takes a second.
package lint
