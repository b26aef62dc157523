// Package scenarios owns scenario scripts: text files in which an API server is
// started, bent, asked and stopped, each told by its own comments. It holds the
// commands of the scripts, a library of them, and the runner that runs one in
// virtual or in real time, from a test or from a program. It never decides how a
// server is assembled or bent: that is envtest's, and a command only calls it.
//
// A script is a txtar archive for testscript: commands first, then the files
// they name. Its commands are described in docs/reference/scripts.md.
package scenarios
