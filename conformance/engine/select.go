package engine

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// Selection says which cases to run. Its zero value is all.
type Selection struct {
	// Focus and Skip are regular expressions for ID, area or promise: what a case must match,
	// and what it must not. Empty ones match all and none.
	Focus, Skip string
	// Labels is a query of ginkgo's for the labels of a case, such as "S6 && core".
	Labels string
}

// String describes the selection for people.
func (s Selection) String() string {
	var parts []string
	for _, part := range [][2]string{{"focus", s.Focus}, {"skip", s.Skip}, {"label filter", s.Labels}} {
		if part[1] != "" {
			parts = append(parts, fmt.Sprintf("%s %q", part[0], part[1]))
		}
	}
	return strings.Join(parts, ", ")
}

// Select returns the cases of a selection. It is an error if there are none.
func Select[T any](cases []Case[T], s Selection) ([]Case[T], error) {
	focus, err := expression("focus", s.Focus)
	if err != nil {
		return nil, err
	}
	skip, err := expression("skip", s.Skip)
	if err != nil {
		return nil, err
	}
	labelled, err := ParseLabels(s.Labels)
	if err != nil {
		return nil, fmt.Errorf("select cases: %w", err)
	}
	var chosen []Case[T]
	for _, c := range cases {
		if c.matches(focus) && (s.Skip == "" || !c.matches(skip)) && labelled(c.Labels()) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		const none = "select cases: none of the %d cases matches %s; list them to see their names"
		return nil, fmt.Errorf(none, len(cases), s)
	}
	return chosen, nil
}

func expression(name, text string) (*regexp.Regexp, error) {
	parsed, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("select cases: %s is not a regular expression: %w", name, err)
	}
	return parsed, nil
}

func (c Case[T]) matches(expression *regexp.Regexp) bool {
	return expression.MatchString(c.ID) || expression.MatchString(c.Area) || expression.MatchString(c.Promise)
}

// ParseLabels reads a query of ginkgo's, such as "S6 && !failure". An empty one matches all.
func ParseLabels(query string) (func(labels []string) bool, error) {
	filter, err := types.ParseLabelFilter(query)
	if err == nil {
		return filter, nil
	}
	// The text of a GinkgoError is a coloured page. Its Message repeats the query, and then says in
	// its last line what is wrong with it.
	if told, ok := errors.AsType[types.GinkgoError](err); ok {
		err = errors.New(told.Message[strings.LastIndexByte(told.Message, '\n')+1:])
	}
	return nil, fmt.Errorf("label filter %q: %w; write one like: S6 && core && !failure", query, err)
}
