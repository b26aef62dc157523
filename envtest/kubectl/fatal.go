package kubectl

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"

	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/i18n"
)

// fatal is how kubectl fails in this process: by a panic that run recovers. The handler is
// a variable of upstream's package, for all commands that run at the same time.
var fatal fatalHandler

type fatalHandler struct {
	mu      sync.Mutex
	running int
	english bool // and not the language of whoever runs the test
}

// fatalExit is the panic in the place of the end of the process.
type fatalExit struct{ reason string }

func (h *fatalHandler) run(f func() error) (err error) {
	h.enter()
	defer h.leave()
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

func (h *fatalHandler) enter() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.english {
		h.english = true
		_ = i18n.LoadTranslations("kubectl", func() string { return "default" }) // embedded in the program
	}
	if h.running++; h.running == 1 {
		cmdutil.BehaviorOnFatal(func(reason string, code int) {
			panic(fatalExit{cmp.Or(reason, fmt.Sprintf("exit status %d", code))})
		})
	}
}

func (h *fatalHandler) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running--; h.running == 0 {
		cmdutil.DefaultBehaviorOnFatal()
	}
}
