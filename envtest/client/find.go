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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"snowglobe.test/envtest/client/internal/own"
	"snowglobe.test/envtest/client/internal/program"
)

// find connects to a server, and starts one if there is none.
func find(ctx context.Context) (*rpc.Client, error) {
	if socket := os.Getenv(program.SocketEnv); socket != "" {
		if !filepath.IsAbs(socket) {
			return nil, fmt.Errorf("%s=%s is not an absolute path, and each package's tests run in another folder", program.SocketEnv, socket)
		}
		conn, err := dial(ctx, socket)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; start one there: snowglobe serve --socket %s", program.SocketEnv, err, socket)
		}
		return conn, nil
	}
	folder, err := program.Folder()
	if err != nil {
		return nil, err
	}
	path, err := program.Find(ctx, folder)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program.Env, err)
	}
	// Each build of the program has its own socket, so a test never gets another build's server.
	build := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", path, info.Size(), info.ModTime().UnixNano()))
	socket := filepath.Join(folder, fmt.Sprintf("%x.sock", build[:8]))
	if len(socket) > maxPath {
		return nil, fmt.Errorf("the path of the socket, %s, is longer than %d bytes: give XDG_CACHE_HOME a shorter folder, or %s", socket, maxPath, program.HowToServe)
	}
	if conn, err := dial(ctx, socket); err == nil {
		return conn, nil
	}
	return startOnce(ctx, path, socket)
}

// startOnce starts a server, unless another process has started one by the time it gets the lock.
func startOnce(ctx context.Context, path, socket string) (*rpc.Client, error) {
	unlock, err := own.Lock(ctx, socket+".lock")
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
	if err := startServer(path, socket); err != nil {
		return nil, err
	}
	return dial(ctx, socket)
}

// startServer starts a server that outlives this process, and returns when it listens.
// Its later output goes to a file beside its socket.
func startServer(path, socket string) error {
	log, err := os.Create(socket + ".log")
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	server := exec.Command(path, "serve", "--socket", socket)
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
		return fmt.Errorf("%s serve ended before it listened: %s", path, strings.TrimSpace(line+string(said)))
	}
	_ = stdout.Close()
	return server.Process.Release()
}

// gone reports whether an error means that a server ended while it was called.
func gone(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, rpc.ErrShutdown) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
