// Package stub is what the fakes have in common: answers that a test chooses request by
// request, a record of what was asked, requests that are held until a test lets them
// go, and a server for any listener that leaves nothing behind. It knows nothing about
// the protocols of the fakes.
package stub
