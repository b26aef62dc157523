// Package listeners tells tests what a process listens on, and whether other users of
// the machine can connect to it. It reads /proc, which only Linux has.
package listeners

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The networks of a Listener.
const (
	TCP      = "tcp"
	UDP      = "udp"
	Unix     = "unix"     // a socket that is a file
	Abstract = "abstract" // a unix socket that is no file, so that nothing guards it
)

// Listener is a socket that takes connections, or packets.
type Listener struct {
	Network string
	Address string // an IP address with a port, a file, or what an abstract socket is called
}

func (l Listener) String() string { return l.Network + " " + l.Address }

// tables are the files of /proc/PID/net, with what reads a line of each.
var tables = map[string]func(fields []string) (inode string, l Listener, ok bool){
	"tcp":  internet(TCP, stateListen),
	"tcp6": internet(TCP, stateListen),
	"udp":  internet(UDP, stateUnconnected),
	"udp6": internet(UDP, stateUnconnected),
	"unix": unix,
}

// Of returns what a process listens on, in no order.
func Of(pid int) ([]Listener, error) {
	inodes, err := sockets(pid)
	if err != nil {
		return nil, err
	}
	var all []Listener
	for table, parse := range tables {
		found, err := read(filepath.Join("/proc", strconv.Itoa(pid), "net", table), inodes, parse)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// sockets returns the inodes of the sockets that a process has open.
func sockets(pid int) (map[string]bool, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	descriptors, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	inodes := map[string]bool{}
	for _, d := range descriptors {
		to, err := os.Readlink(filepath.Join(dir, d.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // closed meanwhile
		}
		if err != nil {
			return nil, err
		}
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return inodes, nil
}

func read(path string, inodes map[string]bool, parse func([]string) (string, Listener, bool)) ([]Listener, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a kernel without IPv6
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var all []Listener
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if inode, l, ok := parse(strings.Fields(lines.Text())); ok && inodes[inode] {
			all = append(all, l)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}
