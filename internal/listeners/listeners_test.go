package listeners_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/listeners"
)

func TestOf(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	path := filepath.Join(t.TempDir(), "a socket")
	want := map[listeners.Listener]bool{{Network: listeners.Unix, Address: path}: true, {Network: listeners.Abstract, Address: "@" + t.Name()}: true}
	for _, address := range []string{path, "@" + t.Name()} {
		l, err := net.Listen("unix", address)
		require.NoError(t, err)
		defer func() { _ = l.Close() }()
		conn, err := net.Dial("unix", address)
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		require.NoError(t, err)
		defer func() { _ = l.Close() }()
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		want[listeners.Listener{Network: listeners.TCP, Address: l.Addr().String()}] = true
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = packets.Close() }()
	want[listeners.Listener{Network: listeners.UDP, Address: packets.LocalAddr().String()}] = true

	all, err := listeners.Of(os.Getpid())
	require.NoError(t, err)
	got := map[listeners.Listener]bool{}
	for _, l := range all {
		got[l] = true
	}
	assert.Equal(t, want, got, "and no connection of theirs")
}

func TestOpenToOthers(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "s")
	socket, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer func() { _ = socket.Close() }()
	for _, c := range []struct {
		socket, folder os.FileMode
		want           string
	}{
		{0o600, 0o700, ""},
		{0o660, 0o700, "has mode 0660"},
		{0o600, 0o711, "its folder 0711"},
	} {
		require.NoError(t, os.Chmod(path, c.socket))
		require.NoError(t, os.Chmod(folder, c.folder))
		got, err := listeners.Listener{Network: listeners.Unix, Address: path}.OpenToOthers()
		require.NoError(t, err)
		if c.want == "" {
			assert.Empty(t, got)
		} else {
			assert.Contains(t, got, c.want)
		}
	}
	for _, network := range []string{listeners.TCP, listeners.UDP, listeners.Abstract} {
		got, err := listeners.Listener{Network: network}.OpenToOthers()
		require.NoError(t, err)
		assert.Contains(t, got, "any user")
	}
}
