package listeners

import (
	"encoding/hex"
	"net"
	"slices"
	"strconv"
	"strings"
)

// States of sockets in the tables of TCP and UDP, as the kernel prints them.
const (
	stateListen      = "0A"
	stateUnconnected = "07"
)

// internet parses lines of a table of TCP or UDP whose sockets are in a state.
func internet(network, state string) func([]string) (string, Listener, bool) {
	return func(f []string) (string, Listener, bool) {
		if len(f) < 10 || f[3] != state {
			return "", Listener{}, false
		}
		address, ok := hexAddress(f[1])
		return f[9], Listener{network, address}, ok
	}
}

// hexAddress reads an address as the tables write it: words of four bytes in the order
// of the machine, which is little-endian wherever this runs, and a port.
func hexAddress(text string) (string, bool) {
	host, port, ok := strings.Cut(text, ":")
	ip, err := hex.DecodeString(host)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || portErr != nil || len(ip)%4 != 0 {
		return "", false
	}
	for word := range slices.Chunk(ip, 4) {
		slices.Reverse(word)
	}
	return net.JoinHostPort(net.IP(ip).String(), strconv.FormatUint(number, 10)), true
}

// acceptsConnections is __SO_ACCEPTCON, the flag of a socket that listens.
const acceptsConnections = 1 << 16

// The types of unix sockets that listen, and of those that take packets unasked.
const (
	typeDatagram = "0002"
	fieldsUnix   = 7 // of a socket without a name
)

// unix parses lines of the table of unix sockets.
func unix(f []string) (string, Listener, bool) {
	if len(f) <= fieldsUnix {
		return "", Listener{}, false
	}
	flags, err := strconv.ParseUint(f[3], 16, 32)
	if err != nil || flags&acceptsConnections == 0 && f[4] != typeDatagram {
		return "", Listener{}, false
	}
	name := strings.Join(f[fieldsUnix:], " ")
	if strings.HasPrefix(name, "@") {
		return f[6], Listener{Abstract, name}, true
	}
	return f[6], Listener{Unix, name}, true
}
