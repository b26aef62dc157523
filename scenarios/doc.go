// Package scenarios owns scenario scripts: text files that start an API server,
// inject faults, send requests and stop it, and whose comments tell the story. It
// holds the script commands, a library of scripts, and the runner, which runs a
// script in virtual or real time, from a test or from a program. It never decides
// how a server is assembled or how a fault works: its commands only call envtest.
//
// A script is a txtar archive for testscript: commands first, then the files
// they name. Its commands are described in docs/reference/scripts.md.
package scenarios
