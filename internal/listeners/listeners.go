// Package listeners tells tests what a process listens on, and whether other users of
// the machine can connect to it. It reads /proc, which only Linux has.
package listeners

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
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

// States of sockets in the tables of TCP and UDP.
const (
	stateUnconnected = 7
	stateListen      = 10
)

// Of returns what a process listens on, in no order.
func Of(pid int) ([]Listener, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return nil, err
	}
	opened, err := process.FileDescriptorTargets()
	if err != nil {
		return nil, err
	}
	inodes := map[string]bool{}
	for _, to := range opened {
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	folder := fmt.Sprintf("/proc/%d", pid)
	all, err := onUnix(folder, inodes)
	if err != nil {
		return nil, err
	}
	of, err := procfs.NewFS(folder) // with the tables of the process' network
	if err != nil {
		return nil, err
	}
	tcp, tcpErr := of.NetTCP()
	tcp6, tcp6Err := of.NetTCP6()
	udp, udpErr := of.NetUDP()
	udp6, udp6Err := of.NetUDP6()
	for _, err := range []error{tcpErr, tcp6Err, udpErr, udp6Err} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			return nil, err
		}
	}
	add := func(network string, inode uint64, ip net.IP, port uint64) {
		if inodes[strconv.FormatUint(inode, 10)] {
			all = append(all, Listener{network, net.JoinHostPort(ip.String(), strconv.FormatUint(port, 10))})
		}
	}
	for _, s := range slices.Concat(tcp, procfs.NetTCP(tcp6)) {
		if s.St == stateListen {
			add(TCP, s.Inode, s.LocalAddr, s.LocalPort)
		}
	}
	for _, s := range slices.Concat(udp, procfs.NetUDP(udp6)) {
		if s.St == stateUnconnected {
			add(UDP, s.Inode, s.LocalAddr, s.LocalPort)
		}
	}
	return all, nil
}
