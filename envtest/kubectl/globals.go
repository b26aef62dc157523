//go:build !snowglobe_light

package kubectl

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	_ "unsafe" // for go:linkname

	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/i18n"
)

// globals are variables of the process that kubectl sets, for all commands that run at the same
// time: how it fails, which is by a panic here that run recovers, and what clients do with
// warnings that have no handler of their own.
var globals globalState

type globalState struct {
	mu       sync.Mutex
	running  int
	english  bool // and not the language of whoever runs the test
	warnings rest.WarningHandlerWithContext
}

// defaultWarnings returns what client-go does with warnings, which it only lets set.
//
//go:linkname defaultWarnings k8s.io/client-go/rest.getDefaultWarningHandler
func defaultWarnings() rest.WarningHandlerWithContext

// fatalExit is the panic in the place of the end of the process.
type fatalExit struct{ reason string }

func (g *globalState) run(f func() error) (err error) {
	g.enter()
	defer g.leave()
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case fatalExit:
			err = errors.New(strings.TrimSpace(reason.reason))
		default:
			panic(reason)
		}
	}()
	return f()
}

func (g *globalState) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.english {
		g.english = true
		_ = i18n.LoadTranslations("kubectl", func() string { return "default" }) // embedded in the program
	}
	if g.running++; g.running == 1 {
		g.warnings = defaultWarnings()
		cmdutil.BehaviorOnFatal(func(reason string, code int) {
			panic(fatalExit{cmp.Or(reason, fmt.Sprintf("exit status %d", code))})
		})
	}
}

func (g *globalState) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running--; g.running == 0 {
		cmdutil.DefaultBehaviorOnFatal()
		rest.SetDefaultWarningHandlerWithContext(g.warnings)
	}
}
