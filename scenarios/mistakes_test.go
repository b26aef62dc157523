package scenarios

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

// TestMistakesOnServer is TestMistakes for commands that come after "start", as the first
// line. They have one server in turn, reset in between; after one that does not fail as it
// should, the next gets another.
func TestMistakesOnServer(t *testing.T) {
	mistakes := map[string]struct{ commands, want string }{
		"no such server":        {"hold store/put server=apiserver-1", "apiserver-0"},
		"no such watch":         {"next absent ADDED", `there is no watch "absent"; begin one with: watch absent RESOURCE`},
		"a watch twice":         {"watch all pods\nwatch all pods", `x.txtar:3: watch: wrong arguments: there is a watch "all" already; end it with: unwatch all`},
		"no such path":          {"via client-9", "there is no client-9; did you mean client-1?; the next new one is client-1"},
		"kubectl auth can-i":    {"kubectl auth can-i get pods", "would end the process"},
		"no scheduler":          {"kube-scheduler --stop", "x.txtar:2: kube-scheduler: there is no kube-scheduler; start one with: kube-scheduler"},
		"no nodes":              {"nodes --stop", "x.txtar:2: nodes: there are no nodes; start some with: nodes"},
		"an editor":             {"kubectl edit pod a", "kubectl edit starts an editor"},
		"an editor expected":    {"! kubectl edit pod a", "kubectl edit starts an editor"},
		"a name twice":          {"watch all pods\nrequest --background all GET /version", `x.txtar:3: request: wrong arguments: there is a watch "all" already`},
		"no such server to end": {"shutdown --begin apiserver-1", `no server is called "apiserver-1"`},
		"no rule fires":         {"await fired fail store/put with=unavailable", `there is no rule "fail store/put with=unavailable"; the rules of the script are: none`},
		"unexpected success":    {"! ready\n", "x.txtar:2: ready: succeeded, and was expected to fail"},
		"unknown resource":      {"! list nodez\n", `x.txtar:2: list: wrong arguments: the server serves no resource "nodez"; did you mean nodes? (usage: `},
		"unknown hook":          {"await hook crd-informers-synced end\n", "did you mean crd-informer-synced?"},
		"unknown signal":        {"fire signal/NoSuchSignal server=apiserver-0\n", `unknown point "signal/NoSuchSignal"`},
		"unknown check":         {"await check pong ok\n", `/readyz has no check "pong"; did you mean ping?`},
		"no crash":              {"await crash\n", "the API server has not crashed: not within 1m0s"},
		"cache not frozen":      {"release cache/pods\n", "nothing is held at cache/pods; held are: none"},
	}
	failed := map[string]error{}
	require.NoError(t, virtualtime.Bubble(func() error {
		var server *serverOfMistakes
		for name, c := range mistakes {
			if server == nil {
				var err error
				if server, err = startForMistakes(t.Context(), t.TempDir()); err != nil {
					return err
				}
			}
			failed[name] = server.perform(asserting("\n"+c.commands), t.TempDir())
			if err := failed[name]; err == nil || !strings.Contains(err.Error(), c.want) {
				if err := server.groups.close(); err != nil {
					return err
				}
				server = nil
			} else if err := server.reset(); err != nil {
				return err
			}
		}
		if server == nil {
			return nil
		}
		return server.groups.close()
	}))
	for name, c := range mistakes {
		t.Run(name, func(t *testing.T) {
			assert.NoError(t, Validate(asserting("start\n"+c.commands)), "it needs no server")
			assert.ErrorContains(t, failed[name], c.want)
		})
	}
}

// serverOfMistakes is a server that several scripts use, one after the other.
type serverOfMistakes struct {
	run    *engine.Run
	groups *commandGroups
}

func startForMistakes(ctx context.Context, folder string) (*serverOfMistakes, error) {
	run := engine.New(ctx, asserting("start\n"), engine.Options{})
	s := &serverOfMistakes{run, newCommandGroups(run, Options{})}
	if err := s.perform(run.Script, folder); err != nil {
		return nil, errors.Join(err, s.groups.close())
	}
	return s, nil
}

func (s *serverOfMistakes) perform(one script.Script, folder string) error {
	s.run.Script = one
	return s.run.Perform(folder, s.groups.commands()).Err
}

func (s *serverOfMistakes) reset() error {
	s.groups.clients.Close()
	return s.groups.servers.ControlPlane().Reset(s.run.Background())
}
