package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestEtcdEndsByItself takes the listener away from an etcd.
func TestEtcdEndsByItself(t *testing.T) {
	read, write := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- execute(context.WithoutCancel(t.Context()), []string{"etcd", "--listen", "127.0.0.1:0"}, write, &stderr)
	}()
	lines := bufio.NewScanner(read)
	require.True(t, lines.Scan())
	_, port, _ := strings.Cut(lines.Text(), "http://127.0.0.1:")
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Ctrl-C stops") {
	}
	shutListener(t, port)
	assert.Equal(t, exitBroken, <-ended, "%s", &stderr)
	assert.Contains(t, stderr.String(), "accept tcp 127.0.0.1:"+port)
}

// shutListener ends the listener of this process at a port, without its owner.
func shutListener(t *testing.T, port string) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, file := range files {
		fd, err := strconv.Atoi(file.Name())
		require.NoError(t, err)
		address, err := unix.Getsockname(fd)
		if err != nil {
			continue // no socket
		}
		listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
		if at, ok := address.(*unix.SockaddrInet4); ok && err == nil && listens == 1 && strconv.Itoa(at.Port) == port {
			require.NoError(t, unix.Shutdown(fd, unix.SHUT_RDWR))
			return
		}
	}
	t.Fatalf("no process listens at port %s", port)
}
