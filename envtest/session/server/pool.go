package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/pool"
	"snowglobe.test/envtest/session"
)

// planes are the control planes of tests. Those that no test uses are as they were right after boot.
type planes struct {
	idle pool.Lot
	log  io.Writer
	told func(line string)
}

func (p *planes) tell(format string, args ...any) {
	if p.told != nil {
		p.told(fmt.Sprintf(format, args...))
	}
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
func (p *planes) take(ctx context.Context, test, kind string, opts []envtest.Option) (cp *envtest.ControlPlane, reused bool, err error) {
	if cp := p.takeIdle(ctx, kind); cp != nil {
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

// takeIdle returns one that is idle, nil if there is none. It stops those that have crashed meanwhile.
func (p *planes) takeIdle(ctx context.Context, kind string) *envtest.ControlPlane {
	for {
		cp, _ := p.idle.Take(kind).(*envtest.ControlPlane) // nil if there is none
		if cp == nil || cp.Err() == nil {
			return cp
		}
		if err := cp.Stop(context.WithoutCancel(ctx)); err != nil {
			p.tell("one that was idle and has crashed: %v", err)
		}
	}
}

// put resets a control plane and keeps it. One that cannot be reset is stopped, and so
// is the one that waits longest if there are too many. A failure to reset is no error of
// the test's that had it.
func (p *planes) put(ctx context.Context, test, kind string, cp *envtest.ControlPlane) error {
	if err := cp.Reset(ctx); err != nil {
		p.tell("%s: its control plane ends: %v", test, err)
		return cp.Stop(context.WithoutCancel(ctx))
	}
	return p.idle.Park(context.WithoutCancel(ctx), kind, cp)
}
