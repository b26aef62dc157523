package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// modulePath is the path of this module.
const modulePath = "snowglobe.test"

// file is a file of the tree, with slashes in its path.
type file struct {
	path string
	text []byte
	// The rest is set for .go files only.
	pkg     string // as its package clause says
	doc     string // the comment above the package clause
	imports []imported
}

type imported struct {
	path string
	line int
}

func (f file) dir() string  { return path.Dir(f.path) }
func (f file) isGo() bool   { return path.Ext(f.path) == ".go" }
func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// syntax returns what a Go file says, and the line of each part. It is empty for what is no Go,
// of which the compiler complains.
func (f file) syntax() (parsed *ast.File, lineOf func(ast.Node) int) {
	set := token.NewFileSet()
	lineOf = func(node ast.Node) int { return set.Position(node.Pos()).Line }
	parsed, err := parser.ParseFile(set, f.path, f.text, parser.SkipObjectResolution)
	if err != nil {
		return &ast.File{Name: &ast.Ident{}}, lineOf
	}
	return parsed, lineOf
}

// tree is the repository: all files that are neither ignored nor in .git.
type tree struct {
	files []file
	// modules are the folders of nested modules, to which most rules do not apply.
	modules []string
}

// load reads a tree.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{}
	ignore, err := fs.ReadFile(fsys, ".gitignore")
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == ".git" || name != "." && ignored(string(ignore), name, d.IsDir()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() || !d.Type().IsRegular() {
			return nil
		}
		return t.read(fsys, name)
	})
	return t, err
}

// read adds one file.
func (t *tree) read(fsys fs.FS, name string) error {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	f := file{path: name, text: text}
	if path.Base(name) == "go.mod" && name != "go.mod" {
		t.modules = append(t.modules, path.Dir(name))
	}
	if f.isGo() {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, text, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		f.pkg, f.doc = parsed.Name.Name, parsed.Doc.Text()
		for _, spec := range parsed.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imported{p, set.Position(spec.Pos()).Line})
		}
	}
	t.files = append(t.files, f)
	return nil
}

// ignored understands the two kinds of patterns in our .gitignore: for a name anywhere
// and, after a slash, for a name at the top.
func ignored(ignore, name string, isDir bool) bool {
	for pattern := range strings.Lines(ignore) {
		pattern = strings.TrimSpace(pattern)
		if pattern == "" || pattern[0] == '#' {
			continue
		}
		pattern, onlyDir := strings.CutSuffix(pattern, "/")
		if onlyDir && !isDir {
			continue
		}
		subject := path.Base(name)
		if top, ok := strings.CutPrefix(pattern, "/"); ok {
			pattern, subject = top, name
		}
		if ok, err := path.Match(pattern, subject); ok && err == nil {
			return true
		}
	}
	return false
}

// file returns the file of a path, nil if there is none.
func (t *tree) file(path string) *file {
	for i, f := range t.files {
		if f.path == path {
			return &t.files[i]
		}
	}
	return nil
}

// nested reports whether a file belongs to a module of its own.
func (t *tree) nested(f file) bool {
	return slices.ContainsFunc(t.modules, func(dir string) bool { return strings.HasPrefix(f.path, dir+"/") })
}

// line returns the number of the line at an offset.
func line(text []byte, offset int) int { return 1 + bytes.Count(text[:offset], []byte("\n")) }

// complaint formats what is wrong where.
func complaint(f file, line int, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", f.path, line, fmt.Sprintf(format, args...))
}

// repository returns the tree of this repository.
func repository(t *testing.T) *tree {
	t.Helper()
	tr, err := load(os.DirFS("../.."))
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(tr.files, func(f file) bool { return f.path == "go.mod" }), "the tests of this package must run in internal/lint, two folders below go.mod")
	return tr
}

// obeys reports every complaint as a test error.
func obeys(t *testing.T, complaints []string) {
	t.Helper()
	for _, c := range complaints {
		t.Error(c)
	}
}

// fixture is a small tree and what a rule must say about it: exactly one complaint for
// each entry of want, containing that text.
type fixture struct {
	name  string
	files map[string]string
	want  []string
}

func try(t *testing.T, rule func(*tree) []string, fixtures []fixture) {
	t.Helper()
	for _, fx := range fixtures {
		t.Run(fx.name, func(t *testing.T) {
			m := fstest.MapFS{}
			for name, text := range fx.files {
				m[name] = &fstest.MapFile{Data: []byte(text)}
			}
			tr, err := load(m)
			require.NoError(t, err)
			got := rule(tr)
			ok := len(got) == len(fx.want)
			for _, want := range fx.want {
				ok = ok && slices.ContainsFunc(got, func(c string) bool { return strings.Contains(c, want) })
			}
			assert.True(t, ok, "complaints:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(fx.want, "\n\t"))
		})
	}
}

func TestLoadIgnores(t *testing.T) {
	m := fstest.MapFS{
		".gitignore":         {Data: []byte("# built\n/snowglobe\n/out/\n*.prof\n")},
		".git/config":        {},
		"snowglobe":          {},
		"cmd/snowglobe/a.go": {Data: []byte("package main")},
		"out/x":              {},
		"docs/out/x":         {},
		"bench/cpu.prof":     {},
	}
	tr, err := load(m)
	require.NoError(t, err)
	var got []string
	for _, f := range tr.files {
		got = append(got, f.path)
	}
	want := []string{".gitignore", "cmd/snowglobe/a.go", "docs/out/x"}
	assert.True(t, slices.Equal(got, want), "files %q, want %q", got, want)
}
