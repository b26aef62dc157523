package listeners

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// acceptsConnections is __SO_ACCEPTCON, the flag of a socket that listens.
const acceptsConnections = 1 << 16

// The type of unix sockets that take packets unasked, and the fields of one without a name.
const (
	typeDatagram = "0002"
	fieldsUnix   = 7
)

// onUnix reads the table of unix sockets itself, since procfs ends a name at its first space.
func onUnix(folder string, inodes map[string]bool) (all []Listener, err error) {
	table, err := os.ReadFile(filepath.Join(folder, "net", "unix"))
	for line := range bytes.Lines(table) {
		f := strings.Fields(string(line))
		if len(f) <= fieldsUnix || !inodes[f[6]] {
			continue
		}
		flags, err := strconv.ParseUint(f[3], 16, 32)
		if err != nil || flags&acceptsConnections == 0 && f[4] != typeDatagram {
			continue
		}
		l := Listener{Unix, strings.Join(f[fieldsUnix:], " ")}
		if strings.HasPrefix(l.Address, "@") {
			l.Network = Abstract
		}
		all = append(all, l)
	}
	return all, err
}
