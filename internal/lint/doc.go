// Package lint checks the repository against its own rules: which packages may
// import which, what go.mod must contain, how long a file may be, that every
// package has a comment, what no text may mention, that links and snippets in
// documents are good, and what lies at the top. Each rule is a function of a file
// tree; a test runs it on this repository and on small trees that break it. It
// only reads files, runs no command and loads no package, so it takes a second.
package lint
