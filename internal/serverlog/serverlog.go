// Package serverlog keeps the log of a program, and makes that of an API server short enough
// for the output of a test that failed.
package serverlog

import (
	"fmt"
	"regexp"
	"strings"
)

// header begins a line of klog's: a severity, and the month and day.
var header = regexp.MustCompile(`^[IWEF]\d{4} `)

// routine are warnings and errors of starts and stops that nothing is wrong with.
var routine = regexp.MustCompile(`\] (?:` + strings.Join([]string{
	`Skipping API \S+ because it has no resources\.`,
	`The manifest file is empty, ignoring\.`,
	`"(?:Failed to ensure lease exists, will retry|Error while syncing ConfigMap)" err="namespaces \\"kube-system\\" not found"`,
	`"Failed to watch" err="context canceled"`,
	`Found stale data, removed previous endpoints on kubernetes service`,
	`Unable to remove peer endpoint leases: StorageError: key not found`,
}, "|") + `)`)

// Problems returns the warnings and errors of a log with the lines that continue them,
// such as stacks, and a last line that says how much was left out, with what is routine.
func Problems(log string) string {
	var kept strings.Builder
	left, problem := 0, false
	for line := range strings.Lines(log) {
		if header.MatchString(line) {
			problem = line[0] != 'I' && !routine.MatchString(line)
		}
		if problem {
			kept.WriteString(line)
		} else {
			left++
		}
	}
	if left == 0 {
		return kept.String()
	}
	return fmt.Sprintf("%s(%d lines of information, or of routine, are left out; Log of the control plane returns all)", kept.String(), left)
}
