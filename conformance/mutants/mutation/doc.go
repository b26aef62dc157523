// Package mutation owns mutants of upstream's source: small changes, each of which may change
// what a client is told. It finds the places for them, names them, and writes source in which
// each mutant is behind a switch. It never builds or runs anything.
package mutation
