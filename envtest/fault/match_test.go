package fault

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGlob(t *testing.T) {
	for _, test := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"*", "a/b", true},
		{"a*", "a", true}, {"a*", "ba", false}, {"*a", "ba", true}, {"*a", "ab", false}, {"a*a", "a", false}, {"a*a", "aa", true},
		{"a*b*c", "a-b-c", true}, {"a*b*c", "a-c-c", false}, {"*b*", "abc", true}, {"*b*", "ac", false}, {"a**b", "ab", true},
		{"a*bc*c", "abc", false}, {"a*bc*c", "abcc", true},
	} {
		assert.Equal(t, test.want, glob(test.pattern, test.s), "%q matches %q", test.pattern, test.s)
	}
}

func TestCovers(t *testing.T) {
	op := put
	op.Phase = Before
	for text, want := range map[string]bool{
		"hold store/put": true, "hold store/*": true, "hold store/p*": true, "hold store/delete": false,
		"hold store/put server=alpha": true, "hold store/put server=beta": false,
		"hold store/put resource=configmaps": true, "hold store/put resource=config*": true, "hold store/put resource=pods": false,
		"hold store/put name=a": true, "hold store/put name=b": false, "hold store/put name=default/a": true,
		"hold store/put name=default/*": true, "hold store/put name=other/a": false, "hold store/put namespace=default": true,
		"hold store/put caller=system:*": true, "hold store/put caller=admin": false,
		"hold store/put key=/registry/configmaps/": true, "hold store/put key=/registry/pods/": false,
		"hold http/*": false, "hold http/* phase=after": false,
	} {
		rule, err := Parse(text, nil)
		if assert.NoError(t, err) {
			assert.Equal(t, want, rule.Covers(&op), text)
		}
	}
}

func TestCoversThePhase(t *testing.T) {
	phases := []Phase{"", Before, After, Stream}
	for _, rule := range phases {
		for _, op := range phases[1:] {
			m := Match{Point: "http/*", Phase: rule}
			want := rule == op || rule == "" && op == Before
			assert.Equal(t, want, m.Covers(&Operation{Point: "http/get", Phase: op}), "a rule about %q, an operation in %q", rule, op)
		}
	}
}

func TestDuring(t *testing.T) {
	for _, test := range []struct {
		m    Match
		from time.Duration
		to   time.Duration // 0 is for ever
	}{
		{Match{}, 0, 0},
		{Match{After: 5}, 5, 0},
		{Match{For: 5}, 0, 5},
		{Match{After: 5, For: 5}, 5, 10},
		{Match{After: 5, Until: 7}, 5, 7},
	} {
		for age := range time.Duration(20) {
			want := age >= test.from && (test.to == 0 || age < test.to)
			assert.Equal(t, want, test.m.during(age), "%+v at %d", test.m, age)
		}
	}
}

func TestSuggest(t *testing.T) {
	names := []string{"list", "watch", "sync"}
	assert.Equal(t, "; there is list, watch or sync", suggest("qqqqq", names))
	assert.Equal(t, "; did you mean list?", suggest("lisd", names))
	assert.Equal(t, "; there are 41, and none is like it", suggest("qqqqq", make([]string, maxListed+1)))
}

func TestIncludes(t *testing.T) {
	match := func(text string) Match {
		m, err := ParseMatch(text, nil)
		require.NoError(t, err)
		return m
	}
	for _, c := range []struct {
		match, other string
		want         bool
	}{
		{"cache/pods", "cache/pods", true},
		{"cache/pods", "cache/pods server=apiserver-1", true},
		{"cache/pods server=apiserver-1", "cache/pods", false},
		{"cache/pods server=apiserver-1", "cache/pods server=apiserver-2", false},
		{"cache/*", "cache/pods server=apiserver-*", true},
		{"cache/pods", "cache/*", false},
		{"http/get", "http/get phase=after", true},
		{"http/get phase=after", "http/get", false},
		{"store/put resource=pods", "store/put resource=pods name=default/a nth=2", true},
		{"store/put namespace=other", "store/put name=default/a", false},
		{"store/put key=/a", "store/put key=/a/b", true},
		{"store/put key=/a/b", "store/put key=/a", false},
		{"store/put times=1", "store/put", false},
	} {
		m, other := match(c.match), match(c.other)
		assert.Equal(t, c.want, m.Includes(&other), "%s, %s", c.match, c.other)
	}
}
