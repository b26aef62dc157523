package checkers

import (
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// scope is which objects a list or a watch is about.
type scope struct {
	resource
	version   string
	namespace string // of all if empty
	name      string // of all if empty
	labels    labels.Selector
	// text is everything that chooses by content, so that two scopes can be compared.
	text string
	// hidden says that the objects are also chosen by what a history does not tell.
	hidden bool
}

// scopeOf returns the scope of a request.
func scopeOf(r request) scope {
	s := scope{resource: r.resource, version: r.version, namespace: r.namespace, name: r.name}
	s.text = strings.Join([]string{r.query.Get("labelSelector"), r.query.Get("fieldSelector"), r.query.Get("shardSelector")}, "&")
	selector, err := labels.Parse(r.query.Get("labelSelector"))
	s.hidden = err != nil || r.query.Get("shardSelector") != ""
	if err == nil && !selector.Empty() {
		s.labels = selector
	}
	byField, err := fields.ParseSelector(r.query.Get("fieldSelector"))
	if err != nil {
		s.hidden = true
		return s
	}
	for _, q := range byField.Requirements() {
		switch {
		case q.Operator != selection.Equals && q.Operator != selection.DoubleEquals:
			s.hidden = true
		case q.Field == "metadata.name" && (s.name == "" || s.name == q.Value):
			s.name = q.Value
		case q.Field == "metadata.namespace" && (s.namespace == "" || s.namespace == q.Value):
			s.namespace = q.Value
		default:
			s.hidden = true
		}
	}
	return s
}

// all reports whether the scope has every object of its path.
func (s scope) all() bool { return s.labels == nil && !s.hidden }

// covers reports whether the path has an object of that key.
func (s scope) covers(k key) bool {
	return s.resource == k.resource && (s.namespace == "" || s.namespace == k.namespace) && (s.name == "" || s.name == k.object)
}

// selects reports whether the labels of an object are those that are asked for.
func (s scope) selects(o Object) bool {
	if s.labels == nil {
		return true
	}
	set, _ := labels.ConvertSelectorToLabelsMap(o.Labels) // which a server has found valid
	return s.labels.Matches(set)
}

// finalizersOf returns an object's finalizers.
func finalizersOf(o Object) []string {
	return strings.FieldsFunc(o.Finalizers, func(r rune) bool { return r == ',' })
}

// keyOf returns the key of an object of the scope.
func (s scope) keyOf(o Object) key {
	return key{s.resource, o.Namespace, o.Name}
}
