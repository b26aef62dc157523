package fault

import (
	"cmp"
	"strings"
	"time"
)

// Match says which operations a rule is about. A field that is not set matches
// everything. In Server, Verb, Resource, Namespace, Name, Caller, and in Point
// after the slash, a * stands for any text.
//
// Operations that match identity and time are counted for the rule, from 1. Nth
// and Every choose by that count, Probability by seed, rule, identity and
// occurrence; Times limits how often the rule fires in all.
type Match struct {
	Point     string // needed
	Phase     Phase  // "" is Before
	Server    string
	Verb      string
	Resource  string
	Namespace string
	Name      string
	Caller    string
	KeyPrefix string

	Nth         Range
	Every       int     // 3 is the third, the sixth, ...
	Probability float64 // above 0, at most 1
	Times       int

	After time.Duration // since the rule was added
	For   time.Duration // since After
	Until time.Duration // since the rule was added; not together with For
}

// Range is First to Last, both included; a Last of 0 is no end. Zero is everything.
type Range struct{ First, Last int }

func (r Range) has(n int) bool { return n >= r.First && (r.Last == 0 || n <= r.Last) }

// String is the match as in a rule, such as "store/put resource=configmaps".
func (m Match) String() string { return strings.TrimSpace(Rule{Match: m}.String()) }

// Covers reports whether the identity of an operation matches. It counts nothing.
func (m *Match) Covers(op *Operation) bool {
	return cmp.Or(m.Phase, Before) == cmp.Or(op.Phase, Before) && glob(m.Point, op.Point) &&
		suits(m.Server, op.Server) && suits(m.Verb, op.Verb) && suits(m.Resource, op.Resource) &&
		suits(m.Namespace, op.Namespace) && suits(m.Name, op.Name) && suits(m.Caller, op.Caller) &&
		strings.HasPrefix(op.Key, m.KeyPrefix)
}

// Includes reports whether all operations that another match is about are also of this one,
// as far as their identities say. What chooses among them (Nth, Times, ...) need not be set.
func (m *Match) Includes(other *Match) bool {
	includes := func(pattern, s string) bool { return pattern == "" || s != "" && glob(pattern, s) }
	return glob(m.Point, other.Point) && (m.Phase == "" || m.Phase == other.Phase) &&
		includes(m.Server, other.Server) && includes(m.Verb, other.Verb) && includes(m.Resource, other.Resource) &&
		includes(m.Namespace, other.Namespace) && includes(m.Name, other.Name) && includes(m.Caller, other.Caller) &&
		strings.HasPrefix(other.KeyPrefix, m.KeyPrefix) && m.choice() == (Match{})
}

// choice is what chooses among operations of the same identity.
func (m *Match) choice() Match {
	return Match{Nth: m.Nth, Every: m.Every, Probability: m.Probability, Times: m.Times, After: m.After, For: m.For, Until: m.Until}
}

// end is when the rule ends, counted since it was added; 0 is never.
func (m *Match) end() time.Duration {
	if m.For > 0 {
		return m.After + m.For
	}
	return m.Until
}

// during reports whether the rule applies at an age.
func (m *Match) during(age time.Duration) bool {
	return age >= m.After && (m.end() == 0 || age < m.end())
}

// suits is glob, where an empty pattern is not set.
func suits(pattern, s string) bool { return pattern == "" || glob(pattern, s) }

// glob reports whether a pattern, in which * is any text, matches all of s.
func glob(pattern, s string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == s
	}
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}
