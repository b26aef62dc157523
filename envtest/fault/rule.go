package fault

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Rule says what is done to which operations. As text it is one line: the
// action, the point, and KEY=VALUE in any order.
//
//	fail store/put resource=configmaps name=default/a nth=2 with=unavailable
//	hold hook/start-apiextensions-informers
//
// Values with spaces are quoted as in Go. String and Parse are inverse.
type Rule struct {
	Action
	Match
	// Optional rules need not fire.
	Optional bool
}

const optional = "optional"

// ruleKey is a KEY of the text form.
type ruleKey struct {
	name    string
	meaning string
	get     func(*Rule) string        // "" if it is not set
	set     func(*Rule, string) error // of a value that is not ""
}

// ruleKeys in the order in which they are printed.
var ruleKeys = [...]ruleKey{
	textKey("phase", "`before` the operation happens (the default); `after` it, before its answer is sent; `stream`, at a part of its answer", func(r *Rule) *Phase { return &r.Phase }),
	textKey("server", "the control plane, or one of its API servers; `*` stands for any text, here and in the keys down to `caller`", func(r *Rule) *string { return &r.Server }),
	textKey("verb", "one of the verbs of the point", func(r *Rule) *string { return &r.Verb }),
	textKey("resource", "the plural with its group, such as `configmaps` or `deployments.apps`; a request's subresource counts as a separate resource, such as `pods/status` or `deployments.apps/scale`", func(r *Rule) *string { return &r.Resource }),
	{"namespace", "the object's", namespaceAlone, setNamespace},
	{"name", "the object's, as NAME or NAMESPACE/NAME", nameOf, setName},
	textKey("caller", "the user or component that makes the request", func(r *Rule) *string { return &r.Caller }),
	textKey("key", "the beginning of a store key, a path or an address", func(r *Rule) *string { return &r.KeyPrefix }),
	valueKey("nth", "only some of the matching operations, counted for this rule from 1: `nth=2`, `nth=2..5`, `nth=2..`", func(r *Rule) *Range { return &r.Nth }, Range.text, parseRange),
	countKey("every", "only every second, every third, and so on: `every=3`", func(r *Rule) *int { return &r.Every }),
	countKey("times", "the maximum number of times the rule fires", func(r *Rule) *int { return &r.Times }),
	valueKey("probability", "above 0, at most 1; the seed, the rule and the operation decide, so a run with the same seed has the same outcome", func(r *Rule) *float64 { return &r.Probability }, func(p float64) string { return strconv.FormatFloat(p, 'g', -1, 64) }, parseProbability),
	timeKey("after", "the rule takes effect this long after it was added", func(r *Rule) *time.Duration { return &r.After }),
	timeKey("for", "and ends this long after that", func(r *Rule) *time.Duration { return &r.For }),
	timeKey("until", "or this long after it was added", func(r *Rule) *time.Duration { return &r.Until }),
	timeKey("by", "how long a delay takes; of `fire`, how long after its server has begun to serve", func(r *Rule) *time.Duration { return &r.By }),
	textKey("with", "the error", func(r *Rule) *Failure { return &r.With }),
	valueKey("retry-after", "sent along with 429 and 503, in whole seconds", func(r *Rule) *time.Duration { return &r.RetryAfter }, shortly, parseRetryAfter),
	countKey("at", "the last revision that a freeze lets pass", func(r *Rule) *int64 { return &r.At }),
}

// String is the rule as text.
func (r Rule) String() string {
	words := []string{string(r.Kind)}
	if r.Point != "" {
		words = append(words, r.Point)
	}
	for _, key := range ruleKeys {
		if v := key.get(&r); v != "" {
			words = append(words, key.name+"="+quoted(v))
		}
	}
	if r.Optional {
		words = append(words, optional)
	}
	return strings.Join(words, " ")
}

// quoted puts quotes around a value that could not be read back without them.
func quoted(v string) string {
	odd := func(r rune) bool { return r == '"' || r == '#' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if strings.ContainsFunc(v, odd) || !utf8.ValidString(v) {
		return strconv.Quote(v)
	}
	return v
}

// valueKey is a key of one field, which is not set when it is zero.
func valueKey[V comparable](name, meaning string, field func(*Rule) *V, text func(V) string, parse func(string) (V, error)) ruleKey {
	get := func(r *Rule) string {
		if *field(r) == *new(V) {
			return ""
		}
		return text(*field(r))
	}
	set := func(r *Rule, v string) (err error) {
		*field(r), err = parse(v)
		return err
	}
	return ruleKey{name, meaning, get, set}
}

func textKey[S ~string](name, meaning string, field func(*Rule) *S) ruleKey {
	return valueKey(name, meaning, field, func(s S) string { return string(s) }, func(v string) (S, error) { return S(v), nil })
}

func countKey[N int | int64](name, meaning string, field func(*Rule) *N) ruleKey {
	return valueKey(name, meaning, field, func(n N) string { return fmt.Sprint(n) }, func(v string) (N, error) {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n <= 0 || int64(N(n)) != n {
			return 0, fmt.Errorf("%s= is a whole number above 0, not %q", name, v)
		}
		return N(n), nil
	})
}

func timeKey(name, meaning string, field func(*Rule) *time.Duration) ruleKey {
	return valueKey(name, meaning, field, shortly, func(v string) (time.Duration, error) {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return 0, fmt.Errorf("%s= is a time above 0, such as 3s or 250ms, not %q", name, v)
		}
		return d, nil
	})
}

func parseRetryAfter(v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 || d%time.Second != 0 {
		return 0, fmt.Errorf("retry-after= is a number of whole seconds, such as 2s, not %q", v)
	}
	return d, nil
}

// shortly prints a time without the zeros at its end, such as 1h.
func shortly(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// nameOf prints the name with its namespace, as NAMESPACE/NAME.
func nameOf(r *Rule) string {
	if r.Name == "" || r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// namespaceAlone prints a namespace that does not stand before a name.
func namespaceAlone(r *Rule) string {
	if r.Name != "" {
		return ""
	}
	return r.Namespace
}

func setName(r *Rule, v string) error {
	namespace, name, ok := strings.Cut(v, "/")
	if !ok {
		r.Name = v
		return nil
	}
	if namespace == "" || name == "" {
		return fmt.Errorf("name= is NAME or NAMESPACE/NAME, not %q; for all of a namespace say namespace=", v)
	}
	r.Name = name
	return setNamespace(r, namespace)
}

func setNamespace(r *Rule, v string) error {
	if r.Namespace != "" {
		return errors.New("the namespace is said twice")
	}
	r.Namespace = v
	return nil
}

func (r Range) text() string {
	switch {
	case r.First == r.Last:
		return strconv.Itoa(r.First)
	case r.Last == 0:
		return fmt.Sprintf("%d..", r.First)
	default:
		return fmt.Sprintf("%d..%d", r.First, r.Last)
	}
}

func parseRange(v string) (n Range, err error) {
	first, last, isRange := strings.Cut(v, "..")
	n.First, err = strconv.Atoi(first)
	n.Last = n.First
	if isRange {
		n.Last = 0
	}
	if last != "" && err == nil {
		if n.Last, err = strconv.Atoi(last); n.Last == 0 {
			n.Last = -1 // no end is said by nothing, not by 0
		}
	}
	if err != nil || !n.valid() {
		return Range{}, fmt.Errorf("nth= is a number from 1 on, or a range such as 2..5 or 2.., not %q", v)
	}
	return n, nil
}

func (r Range) valid() bool { return r.First >= 1 && (r.Last == 0 || r.Last >= r.First) }

func parseProbability(v string) (float64, error) {
	p, err := strconv.ParseFloat(v, 64)
	if err != nil || !(p > 0 && p <= 1) {
		return 0, fmt.Errorf("probability= is a number above 0, at most 1, not %q", v)
	}
	return p, nil
}
