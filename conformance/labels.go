package conformance

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"snowglobe.test/conformance/suite"
)

// failureLabel is the label of cases about what happens when something fails or is refused.
const failureLabel = "failure"

// kepNumber is a KEP in a case's source.
var kepNumber = regexp.MustCompile(`KEP-(\d+)`)

// Labels are what a case is selected by: its system, area and level, "failure" if it is about
// one, and the KEPs that it tests, such as "KEP-555".
func Labels(c suite.Case) []string {
	labels := []string{c.System, string(c.Area), string(c.Level)}
	if c.Failure {
		labels = append(labels, failureLabel)
	}
	return append(labels, kepNumber.FindAllString(c.Source, -1)...)
}

// ParseLabels reads a query of ginkgo's, such as "S6 && !failure". An empty one matches all.
func ParseLabels(query string) (func(labels []string) bool, error) {
	filter, err := types.ParseLabelFilter(query)
	if err == nil {
		return filter, nil
	}
	// Its text is a page in colours, with the query above the last line of what it says.
	if told, ok := errors.AsType[types.GinkgoError](err); ok {
		err = errors.New(told.Message[strings.LastIndexByte(told.Message, '\n')+1:])
	}
	return nil, fmt.Errorf("label filter %q: %w; write one like: S6 && core && !failure", query, err)
}
