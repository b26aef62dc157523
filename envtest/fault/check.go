package fault

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"snowglobe.test/internal/nearest"
)

// Names are the names that exist, by kind: "hook", of which "post-start hook" and
// "pre-shutdown hook" are some, "signal", "stage", "resource", "subresource" (such as
// pods/status), "webhook", "apiservice", "server". A rule with another name is
// refused, unless its kind has none, or it is a resource of an unknown group: a CRD
// may bring it later.
type Names map[string][]string

// checked is a rule with nothing wrong in it, and the entries that it is about.
type checked struct {
	Rule
	kinds []*PointKind
}

// Validate says everything that is wrong with the rule.
func (r Rule) Validate(known Names) error {
	_, err := r.validate(known)
	return err
}

func (r Rule) validate(known Names) (checked, error) {
	kinds, faults := r.check(known)
	var errs []error
	for _, f := range faults {
		errs = append(errs, &MistakeError{r, f.text})
	}
	return checked{r, kinds}, errors.Join(errs...)
}

// MistakeError says what is wrong with a rule, whatever else happens.
type MistakeError struct {
	Rule   Rule
	Reason string
}

// Error implements error.
func (e *MistakeError) Error() string { return fmt.Sprintf("rule %q: %s", e.Rule, e.Reason) }

// mistake is something wrong with a part of a rule: "action", "point", or a key.
type mistake struct{ part, text string }

// checker looks through a rule, each part of which narrows the kinds it may be about.
type checker struct {
	rule     *Rule
	known    Names
	kinds    []*PointKind
	mistakes []mistake
}

// check returns the entries that a rule is about, and what is wrong with it.
func (r Rule) check(known Names) (kinds []*PointKind, mistakes []mistake) {
	c := &checker{rule: &r, known: known}
	if !slices.Contains(actionKinds(), r.Kind) {
		c.report("action", "unknown action %q%s", r.Kind, suggest(string(r.Kind), nearest.Texts(actionKinds())))
	} else {
		r.Action.problems(c.report)
	}
	c.numbers()
	c.values()
	found := c.point()
	c.words()
	if found && len(c.mistakes) == 0 {
		c.narrow()
	}
	return c.kinds, c.mistakes
}

func (c *checker) report(part, format string, args ...any) {
	c.mistakes = append(c.mistakes, mistake{part, fmt.Sprintf(format, args...)})
}

// numbers checks the numbers of a rule, which Parse could not have read if they were wrong.
func (c *checker) numbers() {
	r := c.rule
	for _, key := range ruleKeys {
		if v := key.get(r); v != "" {
			if err := key.set(&Rule{}, v); err != nil {
				c.report(key.name, "%s", err)
			}
		}
	}
	if r.Kind.stands() && (r.Nth != Range{} || r.Every != 0 || r.Times != 0 || r.Probability != 0) {
		c.report("action", "nth=, every=, times= and probability= choose among operations, and %s is about none; after=, for= and until= say when",
			map[ActionKind]string{Partition: "a partition", Fire: "fire"}[r.Kind])
	}
	if r.For > 0 && r.Until > 0 {
		c.report("until", "for= or until=, not both")
	} else if r.Until > 0 && r.Until <= r.After {
		c.report("until", "until= must be later than after=: both count from when the rule is added")
	}
}

// values checks the texts that do not depend on the point.
func (c *checker) values() {
	r := c.rule
	if strings.Contains(r.Name+r.Namespace, "/") {
		c.report("name", "neither a name nor a namespace has a slash in it")
	}
	c.exists("resource", r.Resource)
	c.exists("server", r.Server)
}

// words checks the texts that are the same at all points. What is suggested is of this one.
func (c *checker) words() {
	r := c.rule
	if all := []Phase{Before, After, Stream}; r.Phase != "" && !slices.Contains(all, r.Phase) {
		c.report("phase", "unknown phase %q%s", r.Phase, suggest(string(r.Phase), nearest.Texts(of(c.kinds, (*PointKind).phases, all))))
	}
	if r.With != "" && !slices.Contains(Failures(), r.With) {
		here := of(c.kinds, func(k *PointKind) []Failure { return k.Failures }, Failures())
		c.report("with", "unknown error %q%s", r.With, suggest(string(r.With), nearest.Texts(here)))
	}
}

// of is what some entries have, or else all that there is.
func of[T ~string](kinds []*PointKind, has func(*PointKind) []T, all []T) []T {
	if found := union(kinds, has); len(found) > 0 {
		return found
	}
	return all
}

// exists checks a name where the names are known.
func (c *checker) exists(part, name string) {
	resource, subresource, isSub := strings.Cut(name, "/")
	if part == "resource" {
		name = resource
	}
	switch known := c.known[part]; {
	case name == "" || len(known) == 0:
	case !mayExist(part, name, known):
		c.report(part, "unknown %s %q%s", part, name, suggest(name, known))
	case isSub:
		c.subresource(resource, subresource)
	}
}

// ofCRDs are the subresources that a CRD can have.
var ofCRDs = []string{"status", "scale"}

// subresource checks one of a resource that may exist. One of a group without any
// known is that of a CRD.
func (c *checker) subresource(resource, subresource string) {
	_, group, _ := strings.Cut(resource, ".")
	names, ofGroup := []string{}, ofCRDs
	for _, known := range c.known["subresource"] {
		parent, sub, _ := strings.Cut(known, "/")
		if _, g, _ := strings.Cut(parent, "."); glob(group, g) {
			ofGroup = nil
		}
		if glob(resource, parent) {
			names = append(names, sub)
		}
	}
	switch names = append(names, ofGroup...); {
	case len(c.known["subresource"]) == 0 || anyGlob(subresource, names):
	case len(names) == 0:
		c.report("resource", "%s have no subresources", resource)
	default:
		c.report("resource", "unknown subresource %q of %s%s", subresource, resource, suggest(subresource, names))
	}
}

// mayExist reports whether a name is known, or may come with a CRD (see Names).
func mayExist(what, name string, known []string) bool {
	if anyGlob(name, known) {
		return true
	}
	_, group, _ := strings.Cut(name, ".")
	return what == "resource" && !slices.ContainsFunc(known, func(k string) bool {
		_, g, _ := strings.Cut(k, ".")
		return glob(group, g)
	})
}

// Failures returns the names of all errors.
func Failures() []Failure {
	all := make([]Failure, len(failures))
	for i, f := range failures {
		all[i] = f.name
	}
	return all
}

// point finds the entries of the rule's point.
func (c *checker) point() bool {
	p := c.rule.Point
	if quoted(p) != p || strings.Contains(p, "=") {
		c.report("point", "the point %q has a character that no point has", p)
		return false
	}
	family, _, _ := strings.Cut(p, "/")
	var points, ofFamily []string
	for _, k := range catalogue {
		if k.isPath() && c.rule.Kind != Partition {
			continue
		}
		names := k.names(c.known)
		if k.covers(p, names) {
			c.kinds = append(c.kinds, k)
		}
		points = append(points, k.points(names)...)
		if k.family() == family {
			ofFamily = append(ofFamily, k.points(names)...)
		}
	}
	if len(c.kinds) > 0 {
		return true
	}
	if len(ofFamily) > 0 {
		points = ofFamily
	}
	slices.Sort(points)
	c.report("point", "unknown point %q%s", p, suggest(p, slices.Compact(points)))
	return false
}

// covers reports whether a point is about an entry; nil names are unknown.
func (k *PointKind) covers(point string, names []string) bool {
	if k.isPath() {
		return point == k.Name
	}
	family, last, _ := strings.Cut(point, "/")
	return k.family() == family && last != "" && (names == nil || mayExist(k.placeholder(), last, names))
}

// points are the points of an entry, or its name if they are not known.
func (k *PointKind) points(names []string) []string {
	if names == nil || k.isPath() {
		return []string{k.Name}
	}
	points := make([]string, len(names))
	for i, n := range names {
		points[i] = k.family() + "/" + n
	}
	return points
}

// narrow leaves the kinds that suit the rule, and reports what rules out the last one.
func (c *checker) narrow() {
	r := c.rule
	if r.Verb != "" {
		why := "operations at " + r.Point + " have no verb of their own"
		if verbs := union(c.kinds, func(k *PointKind) []string { return k.Verbs }); len(verbs) > 0 {
			why = fmt.Sprintf("unknown verb %q at %s%s", r.Verb, r.Point, suggest(r.Verb, verbs))
		}
		c.keep("verb", why, func(k *PointKind) bool { return anyGlob(r.Verb, k.Verbs) })
	}
	phase := cmp.Or(r.Phase, Before)
	c.keep("phase", fmt.Sprintf("there is no phase %s at %s", phase, r.Point), func(k *PointKind) bool { return slices.Contains(k.phases(), phase) })
	for _, key := range ruleKeys {
		if slices.Contains(identityKeys, key.name) && key.get(r) != "" {
			c.carries(key.name)
		}
	}
	if r.Name != "" && r.Namespace != "" {
		c.carries("namespace")
	}
	actions := union(c.kinds, func(k *PointKind) []ActionKind { return k.Actions })
	c.keep("action", fmt.Sprintf("%s means nothing at %s; there is %s", r.Kind, r.Point, nearest.Either(actions)),
		func(k *PointKind) bool { return slices.Contains(k.Actions, r.Kind) })
	if r.With != "" || r.Kind == Fail {
		failures := union(c.kinds, func(k *PointKind) []Failure { return k.Failures })
		why := fmt.Sprintf("%s at %s needs with=", r.Kind, r.Point)
		if r.With != "" {
			why = fmt.Sprintf("%s is no error of %s", r.With, r.Point)
		}
		c.keep("with", fmt.Sprintf("%s; there is %s", why, nearest.Either(failures)),
			func(k *PointKind) bool { return slices.Contains(k.Failures, r.With) })
	}
}

// identityKeys are the keys that need an operation which carries them. What
// carries a name carries a namespace.
var identityKeys = []string{"server", "verb", "resource", "namespace", "name", "caller", "key"}

func (c *checker) carries(field string) {
	c.keep(field, fmt.Sprintf("operations at %s carry no %s", c.rule.Point, field),
		func(k *PointKind) bool { return slices.Contains(k.Fields, field) })
}

// keep leaves the entries that fit. If none does, and some were left, it reports why.
func (c *checker) keep(part, why string, fits func(*PointKind) bool) {
	before := len(c.kinds)
	c.kinds = slices.DeleteFunc(c.kinds, func(k *PointKind) bool { return !fits(k) })
	if before > 0 && len(c.kinds) == 0 {
		c.report(part, "%s", why)
	}
}

func union[T ~string](kinds []*PointKind, of func(*PointKind) []T) []T {
	var all []T
	for _, k := range kinds {
		all = append(all, of(k)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// anyGlob reports whether a pattern matches one of some names.
func anyGlob(pattern string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return glob(pattern, n) })
}

// maxListed is how many known names suggest lists if none is near: a server's hooks
// are about thirty.
const maxListed = 40

// suggest ends a message on an unknown name: the known ones near it, or else all.
func suggest(name string, known []string) string {
	if near := nearest.DidYouMean(name, known); near != "" {
		return near
	}
	if len(known) > maxListed {
		return fmt.Sprintf("; there are %d, and none is like it", len(known))
	}
	return "; there is " + nearest.Either(known)
}
