// Package workshop owns the program with all mutants in it: copies of upstream's modules in
// which each mutant is behind a switch, and the build of them with this repository. The copies
// stay in the user's cache, where the next build finds them.
package workshop
