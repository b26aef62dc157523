package lint

import (
	"bytes"
	"path"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// The file of the protocol between a test and the server, in the module of each.
const (
	serverProtocol = "envtest/session/session.go"
	clientProtocol = "envtest/client/internal/session/session.go"
)

// protocol is the rule that both sides have the same protocol.
func protocol(t *tree) []string {
	texts := map[string]file{}
	for _, f := range t.files {
		if f.path == serverProtocol || f.path == clientProtocol {
			texts[f.path] = f
		}
	}
	server, client := texts[serverProtocol], texts[clientProtocol]
	if bytes.Equal(server.text, client.text) {
		return nil
	}
	return []string{complaint(client, 1, "differs from %s; copy it", serverProtocol)}
}

func TestProtocol(t *testing.T) { obeys(t, protocol(repository(t))) }

func TestProtocolComplains(t *testing.T) {
	try(t, protocol, []fixture{
		{"good", map[string]string{serverProtocol: "package session\n", clientProtocol: "package session\n"}, nil},
		{"edited", map[string]string{serverProtocol: "package session\n", clientProtocol: "package session\n\n"},
			[]string{clientProtocol + ":1: differs from " + serverProtocol}},
	})
}

// pinnedFolder is that of an example whose name ends in the release that it is pinned to.
const pinnedFolder = "examples/pinned-"

// pinned is the rule that an example at older pins has them, and nothing of the API server's.
func pinned(t *tree) []string {
	var complaints []string
	for _, f := range t.files {
		release, ok := strings.CutPrefix(path.Dir(f.path), pinnedFolder)
		if path.Base(f.path) != "go.mod" || !ok && f.path != "envtest/client/go.mod" {
			continue
		}
		parsed, err := modfile.Parse(f.path, f.text, nil)
		if err != nil {
			complaints = append(complaints, complaint(f, 1, "%v", err))
			continue
		}
		for _, r := range parsed.Require {
			switch name := r.Mod.Path; {
			case name == "k8s.io/apiserver" || name == "k8s.io/kubernetes":
				complaints = append(complaints, complaint(f, r.Syntax.Start.Line, "%s is of the API server, which is another process's", name))
			case ok && name == "k8s.io/client-go" && !strings.HasPrefix(r.Mod.Version, "v"+release+"."):
				complaints = append(complaints, complaint(f, r.Syntax.Start.Line, "%s %s is not of the release in the folder's name", name, r.Mod.Version))
			}
		}
	}
	return complaints
}

func TestPinned(t *testing.T) { obeys(t, pinned(repository(t))) }

func TestPinnedComplains(t *testing.T) {
	const example = pinnedFolder + "0.34/go.mod"
	try(t, pinned, []fixture{
		{"good", map[string]string{example: "module a\nrequire k8s.io/client-go v0.34.3\n", "go.mod": "module b\nrequire k8s.io/apiserver v0.37.1\n"}, nil},
		{"raised", map[string]string{example: "module a\nrequire k8s.io/client-go v0.37.1\n"}, []string{example + ":2: k8s.io/client-go v0.37.1 is not of"}},
		{"linked", map[string]string{"envtest/client/go.mod": "module a\nrequire k8s.io/apiserver v0.33.0\n"}, []string{"envtest/client/go.mod:2: k8s.io/apiserver is of"}},
		{"no syntax", map[string]string{example: "modul x\n"}, []string{"unknown directive"}},
	})
}
