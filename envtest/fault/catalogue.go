package fault

import (
	"fmt"
	"slices"
	"strings"

	"snowglobe.test/internal/nearest"
)

// PointKind is an entry of the catalogue: points of one meaning, with the same
// identity and the same actions. A name has several entries if verbs or phases
// differ. An entry without a slash is a network path, which has no operations.
type PointKind struct {
	// Name is the point, such as "store/put". In "hook/<hook>" the part after
	// the slash stands for one of Names. Of a path it is "store" or "client".
	Name string `json:"name"`
	// Meaning is one line: what is about to happen.
	Meaning string `json:"meaning"`
	// Names are what may follow the slash; nil if that is open (see the type Names).
	Names []string `json:"names,omitempty"`
	// Verbs and Phases are those of operations here; nil is no verb, and Before.
	Verbs  []string `json:"verbs,omitempty"`
	Phases []Phase  `json:"phases,omitempty"`
	// Fields are the keys of rules whose values operations here carry.
	Fields []string `json:"fields"`
	// Actions and Failures are what can be done here.
	Actions  []ActionKind `json:"actions"`
	Failures []Failure    `json:"failures,omitempty"`
	// Example is a rule for this entry.
	Example string `json:"example"`
}

// Points returns the catalogue, as a copy.
func Points() []PointKind {
	kinds := make([]PointKind, len(catalogue))
	for i, k := range catalogue {
		kinds[i] = PointKind{
			k.Name, k.Meaning, slices.Clone(k.Names), slices.Clone(k.Verbs), slices.Clone(k.Phases),
			slices.Clone(k.Fields), slices.Clone(k.Actions), slices.Clone(k.Failures), k.Example,
		}
	}
	return kinds
}

// isPath reports whether the entry is something that Partition cuts.
func (k *PointKind) isPath() bool { return !strings.Contains(k.Name, "/") }

func (k *PointKind) family() string {
	family, _, _ := strings.Cut(k.Name, "/")
	return family
}

// placeholder is "hook" for "hook/<hook>", and empty for "store/put".
func (k *PointKind) placeholder() string {
	_, last, _ := strings.Cut(k.Name, "/")
	name, ok := strings.CutPrefix(last, "<")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(name, ">")
}

// names are what may follow the slash; nil if they are not known. Some are known by
// the entry's only verb: "post-start hook".
func (k *PointKind) names(known Names) []string {
	if k.Names != nil {
		return k.Names
	}
	if p := k.placeholder(); p != "" {
		if len(k.Verbs) == 1 && known[k.Verbs[0]+" "+p] != nil {
			return known[k.Verbs[0]+" "+p]
		}
		return known[p]
	}
	_, last, _ := strings.Cut(k.Name, "/")
	return []string{last}
}

// has reports whether an operation is of this kind.
func (k *PointKind) has(op *Operation) bool {
	if k.isPath() {
		return false
	}
	family, last, _ := strings.Cut(op.Point, "/")
	if k.placeholder() == "" {
		if op.Point != k.Name {
			return false
		}
	} else if family != k.family() || last == "" || k.Names != nil && !slices.Contains(k.Names, last) {
		return false
	}
	if k.Verbs != nil && !slices.Contains(k.Verbs, op.Verb) {
		return false
	}
	return slices.Contains(k.phases(), op.Phase)
}

func (k *PointKind) phases() []Phase {
	if k.Phases == nil {
		return []Phase{Before}
	}
	return k.Phases
}

// kindOf returns the entry of an operation, nil if it has none.
func kindOf(op *Operation) *PointKind {
	for _, k := range catalogue {
		if k.has(op) {
			return k
		}
	}
	return nil
}

// FindPoints returns the entries that a pattern names: a point as in a rule
// (store/put, http/*, hook/crd-informer-synced), an entry (hook/<hook>) or a
// family (store). If there are none, the error has the nearest names.
func FindPoints(pattern string) ([]PointKind, error) {
	family, last, isPoint := strings.Cut(pattern, "/")
	kinds := slices.DeleteFunc(Points(), func(k PointKind) bool {
		names := k.names(nil)
		switch {
		case !glob(family, k.family()):
			return true
		case !isPoint, pattern == k.Name:
			return false
		case k.isPath():
			return true
		}
		return last == "" || names != nil && !anyGlob(last, names)
	})
	if len(kinds) > 0 {
		return kinds, nil
	}
	var names []string // the families, and the points whose names are known
	for _, k := range catalogue {
		names = append(append(names, k.family()), k.points(k.names(nil))...)
	}
	return nil, fmt.Errorf("no point is like %q%s", pattern, nearest.DidYouMean(pattern, names))
}
