package lint

import (
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// releasesPage has a table of what each version links, the newest first.
const releasesPage = "docs/releases.md"

// releaseRow is the first row of the table: versions without the name of ours.
var releaseRow = regexp.MustCompile(`(?m)^\| --- .*\n\| [^|]+ \| (.*) \|$`)

// releases is the rule that the table says what go.mod requires.
func releases(t *tree) []string {
	var page, mod *file
	for i, f := range t.files {
		switch f.path {
		case releasesPage:
			page = &t.files[i]
		case "go.mod":
			mod = &t.files[i]
		}
	}
	if page == nil || mod == nil {
		return nil
	}
	parsed, err := modfile.Parse(mod.path, mod.text, nil)
	if err != nil {
		return nil // the rule for go.mod says so
	}
	versions := map[string]string{}
	for _, r := range parsed.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	want := strings.Join([]string{
		versions["k8s.io/kubernetes"], versions["sigs.k8s.io/controller-runtime"], versions["go.etcd.io/etcd/server/v3"],
		strings.TrimSuffix(parsed.Go.Version, ".0"),
	}, " | ")
	at := releaseRow.FindSubmatchIndex(page.text)
	if at == nil {
		return []string{complaint(*page, 1, "there is no table of releases")}
	}
	if got := string(page.text[at[2]:at[3]]); got != want {
		return []string{complaint(*page, line(page.text, at[2]), "the newest row has %s, and go.mod %s", got, want)}
	}
	return nil
}

func TestReleases(t *testing.T) { obeys(t, releases(repository(t))) }

func TestReleasesComplains(t *testing.T) {
	const mod = "module x\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes v1.37.1\n\tsigs.k8s.io/controller-runtime v0.25.2\n\tgo.etcd.io/etcd/server/v3 v3.7.3\n)\n"
	table := func(row string) string { return "# R\n\n| a | b |\n| --- | --- |\n| unreleased | " + row + " |\n" }
	try(t, releases, []fixture{
		{"good", map[string]string{"go.mod": mod, "docs/releases.md": table("v1.37.1 | v0.25.2 | v3.7.3 | 1.26")}, nil},
		{"old", map[string]string{"go.mod": mod, "docs/releases.md": table("v1.36.0 | v0.25.2 | v3.7.3 | 1.26")}, []string{"docs/releases.md:5: the newest row has v1.36.0"}},
		{"none", map[string]string{"go.mod": mod, "docs/releases.md": "# R\n"}, []string{"there is no table"}},
	})
}
