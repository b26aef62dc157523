// Package trial owns the trials of mutants: which conformance cases a mutant is given to, in
// which order, and whether one of them kills it. It knows processes by an interface alone.
package trial
