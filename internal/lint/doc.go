// Package lint holds the repository to its own law: who may import whom,
// what go.mod must say, how long a file may be, what every package must say of
// itself, what text must not name, what documents may point at and show, and
// what lies at the top. Each rule is a function of a file tree, run by a test on
// this repository and on small trees that break it.
//
// It reads files only: it runs no command and loads no package, so that it
// answers at once.
package lint
