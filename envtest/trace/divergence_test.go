package trace

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// lines makes a canonical text of lines whose columns are separated by bars.
func lines(all ...string) string {
	return strings.ReplaceAll(strings.Join(all, "\n"), "|", "\t") + "\n"
}

func TestDivergenceInWords(t *testing.T) {
	a := []string{
		"+0.001s|note|# It snows.",
		"+1.000s|hook post-start rbac/bootstrap-roles|start",
		"+1.001s|client admin|POST /api/v1/configmaps -> 201 ConfigMap default/snow@1 d1",
		"+1.001s|store /registry/configmaps/default/snow|create @1",
		"+1.002s|client admin|GET /api/v1/nodes -> 403 Forbidden",
		"+1.003s|watch admin /api/v1/configmaps #1|ADDED ConfigMap default/snow@1 d1",
		"+1.004s|apiserver-1 check readyz ping|failing",
		"+1.005s|signal HasBeenReady|fired",
	}
	b := append(append([]string{}, a[:4]...),
		"+1.002s|cp apiserver-0 hook post-start rbac/bootstrap-roles|end: out of snow",
		"+1.003s|watch admin /api/v1/configmaps #1|end: connection reset",
		"+1.004s|client admin|GET /api/v1/nodes -> 403 Forbidden",
	)
	assert.Equal(t, `seed 7 and seed 8 do the same up to line 4, at +1.001s:
  +1.000s  hook post-start rbac/bootstrap-roles     starts
  +1.001s  client admin                             is answered 201 ConfigMap default/snow@1 d1 to POST /api/v1/configmaps
  +1.001s  store /registry/configmaps/default/snow  is created, as its change 1
then seed 7 goes on at +1.002s:
  +1.002s  client admin                       is answered 403 Forbidden to GET /api/v1/nodes
  +1.003s  watch admin /api/v1/configmaps #1  receives ADDED ConfigMap default/snow@1 d1
  +1.004s  apiserver-1 check readyz ping      is failing
  (seed 8 has the first of these at +1.004s, in line 7)
but seed 8 goes on at +1.002s:
  +1.002s  cp apiserver-0 hook post-start rbac/bootstrap-roles  fails: out of snow
  +1.003s  watch admin /api/v1/configmaps #1                    ends: connection reset
  +1.004s  client admin                                         is answered 403 Forbidden to GET /api/v1/nodes
  (seed 7 never has the first of these from there on)
so seed 8 does something else first
`, DivergenceOf(lines(a...), lines(b...)).Words("seed 7", "seed 8"))
}

func TestDivergenceCases(t *testing.T) {
	base := []string{"+1.000s|note|a", "+2.000s|hook pre-shutdown h|held", "+3.000s|hook pre-shutdown h|released", "+4.000s|check livez x|ok"}
	for name, c := range map[string]struct {
		b    []string
		want []string
	}{
		"same":      {base, []string{"a and b are the same\n"}},
		"beginning": {append([]string{"+0.500s|note|first"}, base...), []string{"a and b differ from the beginning.", "(b has the first of these at +1.000s, in line 2)", "so b does something else first"}},
		"end":       {base[:2], []string{"at +2.000s:", "is held", "then a goes on at +3.000s:", "is released", "but b ends\n", "so b ends here, and a goes on"}},
		"later": {[]string{base[0], "+2.500s|hook pre-shutdown h|held", "+3.500s|hook pre-shutdown h|released", "+4.000s|check livez x|ok"},
			[]string{"so the same happens at another time: +2.000s in a, +2.500s in b; nothing but times differs in what follows"}},
		"later and other": {[]string{base[0], "+2.500s|hook pre-shutdown h|held", "+3.000s|hook pre-shutdown h|released", "+4.000s|check livez x|failing"},
			[]string{"line 4 is the first that differs in more than its time"}},
		"order": {[]string{base[1], "+2.000s|note|a", base[2], base[3]}, []string{"so each does later what the other does here: the order differs"}},
		"more":  {base[1:], []string{"so a does something else first"}},
		"other": {[]string{"+1.000s|note|b"}, []string{`so "note" sees something else`}},
		"none":  {[]string{"+1.000s|signal Ready|fired"}, []string{"so neither ever does what the other does here"}},
	} {
		words := DivergenceOf(lines(base...), lines(c.b...)).Words("a", "b")
		for _, want := range c.want {
			assert.Contains(t, words, want, name)
		}
	}
	assert.Contains(t, DivergenceOf("", lines(base...)).Words("a", "b"), "a ends here, and b goes on")
}

// TestDivergenceOfRuns names lines, and shows what the lanes that differ had last.
func TestDivergenceOfRuns(t *testing.T) {
	a := canonical(t, run(1, "a")...)
	assert.True(t, DivergenceOf(a, a).Same())
	lines := strings.SplitAfter(a, "\n")
	for want, b := range map[string]string{
		"so b ends here, and a goes on":                      strings.Join(lines[:3], ""),
		"so a ends here, and b goes on":                      a + "+3.000s\tclient a\tmore\n",
		"so the same happens at another time":                strings.Replace(a, "+1.000s\tstore", "+1.500s\tstore", 1),
		`so "client b" sees something else`:                  strings.Replace(a, "403 Forbidden", "200", 1),
		"the order differs":                                  lines[0] + lines[2] + lines[1] + strings.Join(lines[3:], ""),
		"(b has the first of these at +1.000s, in line 3)\n": lines[0] + "+1.000s\tclient aa\tnew\n" + strings.Join(lines[1:], ""),
		"(a has the first of these at +1.000s, in line 3)\n": lines[0] + strings.Join(lines[2:], ""),
		"so neither ever does what the other does here":      strings.Replace(a, "client b\tGET /api/v1/nodes", "client c\tGET /x", 1),
	} {
		d := DivergenceOf(a, b)
		assert.False(t, d.Same())
		assert.Contains(t, d.Words("a", "b"), want)
	}
	assert.Contains(t, DivergenceOf(a, strings.Replace(a, "403 Forbidden", "200", 1)).Words("a", "b"),
		"a and b do the same up to line 1, at +1.000s:\n  +1.000s  client a  is answered 201 ConfigMap default/snow@1 d1 to POST /api/v1/namespaces/default/configmaps\nthen a goes on at +1.000s:\n  +1.000s  client b ")
	assert.Contains(t, DivergenceOf(a, a+"+3.000s\tclient a\tmore\n").Words("a", "b"), "up to line 7, at +3.000s:\n  +1.000s  client a ")
}

func TestStepWords(t *testing.T) {
	for _, c := range [][3]string{
		{"client a", "GET /x -> 0: connection reset", "is answered 0: connection reset to GET /x"},
		{"watch a /x #1", "BOOKMARK @3", "receives BOOKMARK @3"},
		{"watch a /x #1", "end", "ends"},
		{"hook post-start h", "end", "ends"},
		{"signal Ready", "fired", "fires"},
		{"check readyz x", "ok", "turns ok"},
		{"store /registry/x", "update @2", "is updated, as its change 2"},
		{"store /registry/x", "delete @3", "is deleted, as its change 3"},
		{"note", "> start", "> start"},
		{"anything", "else", "else"},
	} {
		assert.Equal(t, c[2], Step{Lane: c[0], Text: c[1]}.words(), c)
	}
}

// The steps of runs say which of their records they are.
func TestDivergenceOfRecords(t *testing.T) {
	a, b := run(1, "a"), run(30, "b")
	assert.True(t, DivergenceOfRecords(a, b).Same(), "they look the same from outside")
	b[6].Elapsed += time.Second
	b[7].Event = WatchEvent{Client: "b", URI: "/api/v1/configmaps?watch=true", Watch: 1, Err: errors.New("timeout")}
	p := DivergenceOfRecords(a, b)
	assert.Equal(t, 5, p.Line)
	assert.Equal(t, []int{3, 1, 4}, []int{p.Common[0].Record, p.Common[1].Record, p.Common[2].Record}, "lanes of one moment are sorted")
	assert.Equal(t, 6, p.NextA[0].Record)
	assert.Equal(t, 5, p.NextB[0].Record)
	assert.Equal(t, Step{Line: 6, At: "+3.000s", Lane: p.NextA[0].Lane, Text: p.NextA[0].Text, Record: 6}, p.Later.AInB)
	ofText := DivergenceOf(canonical(t, a...), canonical(t, b...))
	assert.Equal(t, p.Line, ofText.Line)
	assert.Equal(t, p.Words("a", "b"), ofText.Words("a", "b"))
}
