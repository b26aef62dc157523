package fault

import (
	"slices"
	"strings"
)

// PointKind is an entry of the catalogue: points that mean the same, carry the
// same identity and allow the same actions. Points that differ by verb or
// by phase have several entries of one name. An entry without a slash is a network
// path, of which there are no operations.
type PointKind struct {
	// Name is the point, such as "store/put". In "hook/<hook>" the part after
	// the slash stands for one of Names. Of a path it is "store" or "client".
	Name string `json:"name"`
	// Meaning is one line: what is about to happen.
	Meaning string `json:"meaning"`
	// Names are what may stand after the slash; nil if that is open, and the
	// caller may know (see Names).
	Names []string `json:"names,omitempty"`
	// Verbs and Phases are those an operation here can have; nil means no
	// verb, and the phase Before.
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
	kinds := slices.Clone(catalogue)
	for i := range kinds {
		k := &kinds[i]
		k.Names, k.Verbs, k.Phases = slices.Clone(k.Names), slices.Clone(k.Verbs), slices.Clone(k.Phases)
		k.Fields, k.Actions, k.Failures = slices.Clone(k.Fields), slices.Clone(k.Actions), slices.Clone(k.Failures)
	}
	return kinds
}

// isPath reports whether the entry is something that Partition cuts.
func (k *PointKind) isPath() bool { return !strings.Contains(k.Name, "/") }

// family is the part of the name before the slash.
func (k *PointKind) family() string {
	family, _, _ := strings.Cut(k.Name, "/")
	return family
}

// placeholder is what the name's last part stands for, such as "hook"; empty
// if it stands for itself.
func (k *PointKind) placeholder() string {
	_, last, _ := strings.Cut(k.Name, "/")
	name, ok := strings.CutPrefix(last, "<")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(name, ">")
}

// names are what may stand after the slash; nil if nobody has said.
func (k *PointKind) names(known Names) []string {
	if k.Names != nil {
		return k.Names
	}
	if p := k.placeholder(); p != "" {
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

// kindOf returns the place of an operation in the catalogue, -1 if it has none.
func kindOf(op *Operation) int {
	for i := range catalogue {
		if catalogue[i].has(op) {
			return i
		}
	}
	return -1
}
