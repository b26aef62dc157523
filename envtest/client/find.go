package client

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"snowglobe.test/internal/unixsocket"
)

// The environment variables, which doc.go tells of.
const (
	programEnv = "SNOWGLOBE"
	socketEnv  = "SNOWGLOBE_SOCKET"
)

// howToServe is the way out where a server can't be started by itself.
const howToServe = "start a server (snowglobe serve --socket FILE) and set " + socketEnv + " to its socket"

// find connects to a server, and starts one if there is none.
func find(ctx context.Context) (*rpc.Client, error) {
	if socket := os.Getenv(socketEnv); socket != "" {
		if !filepath.IsAbs(socket) {
			return nil, fmt.Errorf("%s=%s is not an absolute path, and each package's tests run in another folder", socketEnv, socket)
		}
		conn, err := dial(ctx, socket)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; start one there: snowglobe serve --socket %s", socketEnv, err, socket)
		}
		return conn, nil
	}
	folder, err := folder()
	if err != nil {
		return nil, err
	}
	program, err := program(ctx, folder)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", programEnv, err)
	}
	// Another build of the program is another server.
	build := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", program, info.Size(), info.ModTime().UnixNano()))
	socket := filepath.Join(folder, fmt.Sprintf("%x.sock", build[:8]))
	if len(socket) > unixsocket.MaxPath {
		return nil, fmt.Errorf("the path of the socket, %s, is longer than %d bytes: give XDG_CACHE_HOME a shorter folder, or %s", socket, unixsocket.MaxPath, howToServe)
	}
	if conn, err := dial(ctx, socket); err == nil {
		return conn, nil
	}
	return startOnce(ctx, program, socket)
}

// folder is where sockets, locks and programs are: the user's own, so that no other
// user can put one there.
func folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; or %s", err, howToServe)
	}
	path := filepath.Join(cache, "snowglobe", "serve")
	return path, unixsocket.Folder(path)
}

func dial(ctx context.Context, socket string) (*rpc.Client, error) {
	conn, err := unixsocket.Dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	return jsonrpc.NewClient(conn), nil
}

// startOnce starts a server, but for the one that others who hold the lock have started
// meanwhile.
func startOnce(ctx context.Context, program, socket string) (*rpc.Client, error) {
	unlock, err := lock(ctx, socket+".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if conn, err := dial(ctx, socket); err == nil {
		return conn, nil
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove what a killed server has left: %w", err)
	}
	if err := startServer(program, socket); err != nil {
		return nil, err
	}
	return dial(ctx, socket)
}

// lockRetry is how often a lock is tried that another process holds.
const lockRetry = 20 * time.Millisecond

func lock(ctx context.Context, path string) (unlock func(), err error) {
	file := flock.New(path)
	if _, err := file.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Unlock() }, nil
}

// startServer starts a server that outlives this process, and returns when it listens.
// What it says later goes to a file beside its socket.
func startServer(program, socket string) error {
	log, err := os.Create(socket + ".log")
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	server := exec.Command(program, "serve", "--socket", socket)
	server.Stderr = log
	detach(server)
	stdout, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return fmt.Errorf("start snowglobe: %w", err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = server.Wait()
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s serve ended before it listened: %s", program, strings.TrimSpace(line+string(said)))
	}
	_ = stdout.Close()
	return server.Process.Release()
}

// gone reports whether an error means that a server ended while it was called.
func gone(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, rpc.ErrShutdown) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
