package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// repository is the root of this module.
var repository = filepath.Join("..", "..")

// listening are the files that open what a process listens on, with rows of the table in
// docs/limits.md for which they do. TestWhoCanConnect runs what the rows say.
var listening = map[string][]string{
	"bench/load/definition.go": {"`snowglobe bench watch --resource converted-widgets`"},
	"bench/baseline/http2.go":  {"`snowglobe bench watch --transport http2`, or `--baselines`"},
	"cmd/snowglobe/etcd.go": {"`snowglobe etcd`", "`snowglobe etcd --listen unix://FILE`",
		"`snowglobe etcd --client-cert-auth`"},
	"cmd/snowglobe/etcdmain/etcdmain.go": {
		"`etcd` of `snowglobe assets`", "`etcd` of `snowglobe assets`, with `unix://` URLs",
		"`etcd` of `snowglobe assets`, `--client-cert-auth`",
	},
	"cmd/snowglobe/etcdmain/flags.go": nil, // says where, for the former
	"cmd/snowglobe/serve.go":          {"`snowglobe serve`"},
	"envtest/serve/listener.go": {"a control plane of `envtest`, `WithListener`", "`snowglobe up`",
		"`controllerruntime/envtest.Environment`"},
	"envtest/sim/seeds/search.go":              {"`snowglobe test --seeds`"},
	"envtest/storage/cluster/member.go":        {"the `cluster` store"},
	"envtest/storage/cluster/relay.go":         {"the `cluster` store"},
	"envtest/storage/embedded/embedded.go":     {"the `embedded` store"},
	"fakes/etcd/internal/realetcd/realetcd.go": nil, // what tests compare with: a socket in a folder of its own
	"internal/unixsocket/unixsocket.go":        nil, // for the others
}

// TestListening finds in the sources who listens. Whoever does is in the list above, and the
// table tells of it.
func TestListening(t *testing.T) {
	told := documentedExposure(t)
	found := map[string]bool{}
	for path, file := range sources(t, repository) {
		ast.Inspect(file, func(n ast.Node) bool {
			found[path] = found[path] || opens(n)
			return true
		})
	}
	for path, listens := range found {
		_, known := listening[path]
		assert.True(t, known || !listens, "%s listens: who can connect? Add it to the table in docs/limits.md, to "+
			"TestWhoCanConnect and to the list above", path)
	}
	for path, rows := range listening {
		assert.True(t, found[path], "%s does not listen any more", path)
		for _, row := range rows {
			assert.Contains(t, told, row, path)
		}
	}
}

// harmless are packages whose Listen others cannot connect to, or which call one of the list.
var harmless = []string{"memnet", "bufconn", "serve"}

// opens reports whether a node opens what others can connect to: by a function whose name
// begins with Listen, by an HTTP server of a test, or through etcd's configuration.
func opens(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		called, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		of, _ := called.X.(*ast.Ident)
		return strings.HasPrefix(called.Sel.Name, "Listen") && called.Sel.IsExported() && len(n.Args) > 0 &&
			(of == nil || !slices.Contains(harmless, of.Name)) ||
			of != nil && of.Name == "httptest" && slices.Contains([]string{"NewServer", "NewTLSServer",
				"NewUnstartedServer"}, called.Sel.Name)
	case *ast.AssignStmt:
		return slices.ContainsFunc(n.Lhs, func(to ast.Expr) bool {
			field, ok := to.(*ast.SelectorExpr)
			return ok && field.Sel.Name == "ListenClientUrls"
		})
	}
	return false
}

// TestOpens finds every way to listen.
func TestOpens(t *testing.T) {
	const text = `package p
func f() {
	memnet.Listen()
	p.Listener()
	listen(address)
	net.Listen("tcp", a)
	tls.Listen("tcp", a, c)
	net.ListenPacket("udp", a)
	(&net.ListenConfig{}).Listen(ctx, "tcp", a)
	unixsocket.Listen(ctx, path)
	http.ListenAndServe(a, nil)
	httptest.NewServer(h)
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = urls, urls
}
`
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	require.NoError(t, err)
	var lines []int
	ast.Inspect(file, func(n ast.Node) bool {
		if n != nil && opens(n) {
			lines = append(lines, set.Position(n.Pos()).Line)
		}
		return true
	})
	assert.Equal(t, []int{6, 7, 8, 9, 10, 11, 12, 13}, lines)
}

// TestAllFakes finds the functions of fakes that take a listener. listFakes runs each.
func TestAllFakes(t *testing.T) {
	runs, err := os.ReadFile("exposure_fakes_test.go")
	require.NoError(t, err)
	found := 0
	for path, file := range sources(t, filepath.Join(repository, "fakes")) {
		for _, declared := range file.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || !takesListener(f) || strings.HasPrefix(path, "internal/") {
				continue
			}
			found++
			call := file.Name.Name + "." + f.Name.Name
			if f.Recv != nil {
				call = f.Name.Name // of a value that listFakes has made
			}
			assert.True(t, regexp.MustCompile(`[.\t ]`+regexp.QuoteMeta(call)+`\(`).Match(runs),
				"%s of fakes/%s takes a listener: who can connect? Run it in listFakes", call, path)
		}
	}
	assert.Greater(t, found, 10)
}

func takesListener(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		of, ok := p.Type.(*ast.SelectorExpr)
		return ok && of.Sel.Name == "Listener"
	})
}

// sources are the parsed files below a folder, by their paths in it, without tests and other
// modules.
func sources(t *testing.T, root string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if path != root && (err == nil || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		files[filepath.ToSlash(name)] = file
		return err
	}))
	return files
}
