package lint

import (
	"path"
	"regexp"
	"testing"
	"unicode/utf8"
)

// unwanted is what committed text must not contain, and why. The expressions are
// written so that they do not match themselves.
var unwanted = []struct {
	expr *regexp.Regexp
	why  string
}{
	{regexp.MustCompile("(?:^|[\\s\"'`=(,;:\\[<])/(?:work|root|tmp|home|Users)(?:/|[\\s\"'`),;:\\]>.]|$)"),
		"a path on one user's machine: make it relative, or use a temporary folder"},
	{regexp.MustCompile(`\b[\w-]*(?:artifactory|goproxy|nexus)[\w-]*\.[\w-]+`),
		"a package mirror: other users cannot reach it"},
	{regexp.MustCompile(`\b(?:registry|proxy|sum|index|mirrors?)\.[\w-]+\.(?:io|com|org|net|dev)\b`),
		"a registry's host: name what is fetched, not where from"},
	{regexp.MustCompile(`\b(?:docker|ghcr|gcr|quay)\.io\b`),
		"an image registry's host: the name of the image is enough"},
}

// text is the rule that no text contains anything unwanted. It skips go.sum and files
// that are not UTF-8.
func text(t *tree) []string {
	var complaints []string
	for _, f := range t.files {
		if path.Base(f.path) == "go.sum" || !utf8.Valid(f.text) {
			continue
		}
		for _, u := range unwanted {
			for _, at := range u.expr.FindAllIndex(f.text, -1) {
				// The match may begin with the preceding line break.
				complaints = append(complaints, complaint(f, line(f.text, at[0]+1), "%q is %s", f.text[at[0]:at[1]], u.why))
			}
		}
	}
	return complaints
}

func TestText(t *testing.T) { obeys(t, text(repository(t))) }

func TestTextComplains(t *testing.T) {
	// Assembled here so that this file does not break the rule itself.
	const slash, dot = "/", "."
	try(t, text, []fixture{
		{"fine", map[string]string{
			"a.md":   "see ./work/x, https://example.test/root/x, $TMPDIR/tmp/x, /api/v1/tmp, /registry/pods/x, /etc/kubernetes and the proxy.Handler",
			"b.go":   "package b // registry.Register, sum.Total, registry.go",
			"go.sum": "proxy" + dot + "golang.org x",
			"logo":   "\xff\xfe " + slash + "root/x",
		}, nil},
		{"paths", map[string]string{
			"a.go":      "package a\n\nconst p = \"" + slash + "root/go\"\n",
			"b.md":      slash + "work/main\ncd " + slash + "tmp\n",
			"c/.ci/run": "X=" + slash + "home/me/x\n",
		}, []string{"a.go:3:", "b.md:1:", "b.md:2:", "c/.ci/run:1:"}},
		{"hosts", map[string]string{
			"a.md":   "\nGOPROXY=https://proxy" + dot + "golang.org,direct\n",
			"b.yaml": "image: registry" + dot + "k8s.io/pause:3\n",
			"c.yaml": "image: gcr" + dot + "io/x/y\n",
			"d":      "https://my-artifactory" + dot + "example/go\n",
		}, []string{"a.md:2:", "b.yaml:1:", "c.yaml:1:", "d:1:"}},
	})
}
