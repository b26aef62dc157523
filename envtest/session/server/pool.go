package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/session"
)

// pool keeps control planes that no test uses, as they were right after boot.
type pool struct {
	keep int
	log  io.Writer
	told func(line string)

	mu   sync.Mutex
	idle []idle // the one that waits longest first
}

func (p *pool) tell(format string, args ...any) {
	if p.told != nil {
		p.told(fmt.Sprintf(format, args...))
	}
}

type idle struct {
	kind string
	cp   *envtest.ControlPlane
}

// kindOf is the same for options that want the same control plane: it is a hash of them
// and of the files that they name.
func kindOf(options *session.Options) (string, error) {
	hash, wanted := sha256.New(), *options
	wanted.Test = ""
	if err := json.NewEncoder(hash).Encode(wanted); err != nil {
		return "", err
	}
	for _, root := range options.CRDPaths {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			fmt.Fprintf(hash, "%s %d %s", path, len(content), content)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("CRDs: %w", err)
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

// take returns a control plane of a kind, a new one if none is idle.
func (p *pool) take(ctx context.Context, test, kind string, opts []envtest.Option) (cp *envtest.ControlPlane, reused bool, err error) {
	if cp := p.takeIdle(kind); cp != nil {
		p.tell("%s: one that was idle", test)
		return cp, true, nil
	}
	if p.log != nil {
		opts = append(opts, envtest.WithLog(p.log))
	}
	begun := time.Now()
	cp, err = envtest.Launch(ctx, opts...)
	if err != nil {
		p.tell("%s: none: %v", test, err)
		return nil, false, err
	}
	p.tell("%s: a new one, after %s", test, time.Since(begun).Round(time.Millisecond))
	return cp, false, nil
}

func (p *pool) takeIdle(kind string) *envtest.ControlPlane {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, entry := range slices.Backward(p.idle) {
		if entry.kind == kind && entry.cp.Err() == nil {
			p.idle = slices.Delete(p.idle, i, i+1)
			return entry.cp
		}
	}
	return nil
}

// put resets a control plane and keeps it. One that cannot be reset is stopped, and so
// is the one that waits longest if there are too many. A failure to reset is no error of
// the test's that had it.
func (p *pool) put(ctx context.Context, test, kind string, cp *envtest.ControlPlane) error {
	if err := cp.Reset(ctx); err != nil {
		p.tell("%s: its control plane ends: %v", test, err)
		return cp.Stop(context.WithoutCancel(ctx))
	}
	p.mu.Lock()
	p.idle = append(p.idle, idle{kind, cp})
	var tooMany []idle
	if n := len(p.idle) - p.keep; n > 0 {
		tooMany, p.idle = p.idle[:n:n], p.idle[n:]
	}
	p.mu.Unlock()
	var errs []error
	for _, entry := range tooMany {
		errs = append(errs, entry.cp.Stop(context.WithoutCancel(ctx)))
	}
	return errors.Join(errs...)
}

// stop stops all that are idle.
func (p *pool) stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, entry := range p.idle {
		errs = append(errs, entry.cp.Stop(ctx))
	}
	p.idle = nil
	return errors.Join(errs...)
}
