package measure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// Profiler writes profiles of the server's process while a load is delivered: what the CPU does, and
// what had been allocated before and after it, for pprof's -diff_base.
type Profiler struct {
	Folder string // empty for none
	Name   string // of the files, before what is in them
	Err    error  // why there is no profile
	end    func() error
}

// At begins and ends with the load.
func (p *Profiler) At(where Phase) {
	switch {
	case p.Folder == "" || p.Err != nil:
	case where == PhaseBegun:
		if p.end, p.Err = ProfileCPU(p.Path("cpu")); p.Err == nil {
			p.Err = p.allocs("allocs-before")
		}
	case where == PhaseEnded:
		p.Err = errors.Join(p.Stop(), p.allocs("allocs"))
	}
}

// Path is the file of a profile: of "cpu", "allocs-before" or "allocs".
func (p *Profiler) Path(what string) string {
	return filepath.Join(p.Folder, fmt.Sprintf("%s-%s.pprof", p.Name, what))
}

func (p *Profiler) allocs(what string) error {
	file, err := os.Create(p.Path(what))
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}

// Stop ends the profile of the CPU, if it has begun, also of a load that has failed.
func (p *Profiler) Stop() error {
	end := p.end
	p.end = nil
	if end == nil {
		return nil
	}
	return end()
}

// ProfileCPU writes a CPU profile until the returned function is called.
func ProfileCPU(path string) (end func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
