package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

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

// TestStandInEndsWithTest kills a test that has started a stand-in of etcd.
func TestStandInEndsWithTest(t *testing.T) {
	const socketEnv = "STAND_IN_SOCKET"
	if socket := os.Getenv(socketEnv); socket != "" {
		runAs(t, "etcd", t.TempDir(), nil, "--listen-client-urls=unix://"+socket, "--advertise-client-urls=unix://"+socket)
		select {} // until it is killed
	}
	folder, err := os.MkdirTemp("", "t") // short, for the socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket := filepath.Join(folder, "s")
	listens := func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	test := exec.Command(os.Args[0], "-test.run=^TestStandInEndsWithTest$")
	test.Env = append(os.Environ(), socketEnv+"="+socket, "TMPDIR="+folder)
	require.NoError(t, test.Start())
	require.Eventually(t, listens, waitTimeout, time.Millisecond)
	require.NoError(t, test.Process.Kill())
	_ = test.Wait()
	assert.Eventually(t, func() bool { return !listens() }, endsWithin, time.Millisecond, "the stand-in lives on")
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
