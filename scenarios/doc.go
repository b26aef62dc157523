// Package scenarios owns scenario scripts as a whole: the library, finding and running
// scripts in virtual or real time, from a test or from a program, and the list of all their
// commands. What a command does is up to the packages below.
//
// A script is a txtar archive: commands first, then the files they name. Its commands are
// described in docs/reference/scripts.md.
package scenarios
