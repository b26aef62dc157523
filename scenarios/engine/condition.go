package engine

import (
	"fmt"
	"go/build"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// systems are the operating systems and architectures that a condition can name.
var systems = strings.Fields("aix android darwin dragonfly freebsd illumos ios js linux netbsd openbsd plan9 solaris wasip1 windows " +
	"386 amd64 arm arm64 loong64 mips mips64 mips64le mipsle ppc64 ppc64le riscv64 s390x wasm")

// hold reports whether all conditions hold, such as "!virtual".
func (r *Run) hold(conditions []string) (bool, error) {
	for _, condition := range conditions {
		name, negated := strings.CutPrefix(condition, "!")
		holds, err := r.condition(strings.TrimSpace(name))
		if err != nil {
			return false, fmt.Errorf("bad condition %q: %w", name, err)
		}
		if holds == negated {
			return false, nil
		}
	}
	return true, nil
}

func (r *Run) condition(name string) (bool, error) {
	program, isProgram := strings.CutPrefix(name, "exec:")
	switch {
	case name == "virtual":
		return !r.opts.RealTime, nil
	case name == shortName:
		return testing.Short(), nil
	case name == "unix":
		return !slices.Contains([]string{"js", "plan9", "wasip1", "windows"}, runtime.GOOS), nil
	case isProgram:
		_, err := exec.LookPath(program)
		return err == nil, nil
	case slices.Contains(systems, name):
		return name == runtime.GOOS || name == runtime.GOARCH, nil
	case strings.HasPrefix(name, "go1."):
		return slices.Contains(build.Default.ReleaseTags, name), nil
	}
	return false, fmt.Errorf("unknown condition; this package has [virtual], [short], [unix], [exec:PROGRAM], and systems such as [linux]")
}

// shortName is the condition that exists only under go test.
const shortName = "short"
