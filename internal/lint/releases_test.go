package lint

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// releasesPage has a table of what each version links, the newest first.
const releasesPage = "docs/releases.md"

// releaseRow is the first row of the table: the name of ours, and the other versions.
var releaseRow = regexp.MustCompile(`(?m)^\| --- .*\n\| ([^|]+) \| (.*) \|$`)

// releases is the rule that the table says what go.mod requires.
func releases(t *tree) []string {
	page, mod := t.file(releasesPage), t.file("go.mod")
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
	if got := string(page.text[at[4]:at[5]]); got != want {
		return []string{complaint(*page, line(page.text, at[4]), "the newest row has %s, and go.mod %s", got, want)}
	}
	return nil
}

// changelog is the rule that the changelog begins with what is not released, and then with
// the version that the table of releases begins with.
func changelog(t *tree) []string {
	page, log := t.file(releasesPage), t.file("CHANGELOG.md")
	if page == nil || log == nil {
		return nil
	}
	at := releaseRow.FindSubmatch(page.text)
	if at == nil {
		return nil // the rule for the table says so
	}
	want, got := []string{"Unreleased", string(at[1])}, []string{}
	for _, h := range logHeading.FindAllSubmatch(log.text, 2) {
		got = append(got, string(h[1]))
	}
	if !slices.Equal(got, want) {
		return []string{complaint(*log, 1, "it begins with %q, and by %s it should with %q", got, releasesPage, want)}
	}
	return nil
}

// logHeading is the heading of a version, without its date.
var logHeading = regexp.MustCompile(`(?m)^## (\S+)`)

// buildsIgnored is the rule that git ignores the folder of a release: Go would call what is
// built beside it dirty.
func buildsIgnored(t *tree) []string {
	if ignore := t.file(".gitignore"); ignore != nil && t.file(".goreleaser.yaml") != nil && !slices.Contains(strings.Fields(string(ignore.text)), "/dist/") {
		return []string{complaint(*ignore, 1, "/dist/, where goreleaser writes, is missing: versions would end with +dirty")}
	}
	return nil
}

func TestChangelog(t *testing.T) { obeys(t, changelog(repository(t))) }

func TestChangelogComplains(t *testing.T) {
	const table = "# R\n\n| a | b |\n| --- | --- |\n| 0.1.0 | v1 |\n"
	try(t, changelog, []fixture{
		{"good", map[string]string{"docs/releases.md": table, "CHANGELOG.md": "# C\n\n## Unreleased\n\n### Added\n\n## 0.1.0 - 2026-12-01\n\n## 0.0.9\n"}, nil},
		{"old", map[string]string{"docs/releases.md": table, "CHANGELOG.md": "# C\n\n## Unreleased\n\n## 0.0.9\n"}, []string{`it begins with ["Unreleased" "0.0.9"]`}},
		{"no room", map[string]string{"docs/releases.md": table, "CHANGELOG.md": "# C\n\n## 0.1.0\n"}, []string{`it begins with ["0.1.0"]`}},
	})
}

func TestBuildsIgnored(t *testing.T) { obeys(t, buildsIgnored(repository(t))) }

func TestBuildsIgnoredComplains(t *testing.T) {
	try(t, buildsIgnored, []fixture{
		{"good", map[string]string{".gitignore": "/bin/\n/dist/\n", ".goreleaser.yaml": ""}, nil},
		{"bad", map[string]string{".gitignore": "/bin/\n", ".goreleaser.yaml": ""}, []string{".gitignore:1: /dist/"}},
	})
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
