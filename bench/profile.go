package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// profiler writes profiles of the server's process while a load is delivered: what the CPU does, and
// what had been allocated before and after it, for pprof's -diff_base.
type profiler struct {
	folder, name string
	end          func() error
	err          error
}

// at begins and ends with the load.
func (p *profiler) at(where phase) {
	switch {
	case p.folder == "" || p.err != nil:
	case where == phaseBegun:
		if p.end, p.err = profile(p.path("cpu")); p.err == nil {
			p.err = p.allocs("allocs-before")
		}
	case where == phaseEnded:
		p.err = errors.Join(p.stop(), p.allocs("allocs"))
	}
}

func (p *profiler) path(what string) string {
	return filepath.Join(p.folder, fmt.Sprintf("%s-%s.pprof", p.name, what))
}

func (p *profiler) allocs(what string) error {
	file, err := os.Create(p.path(what))
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}

// stop ends the profile of the CPU, if it has begun, also of a load that has failed.
func (p *profiler) stop() error {
	end := p.end
	p.end = nil
	if end == nil {
		return nil
	}
	return end()
}
