package scenarios

import (
	"fmt"
	"strings"

	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

// Lint returns what is wrong with a script, for which Run would refuse it, and what is not
// as in a good one. Each begins with its place.
func Lint(s script.Script) (mistakes []error, remarks []string) {
	mistakes = engine.Mistakes(Validate(s))
	remark := func(line int, format string, args ...any) {
		remarks = append(remarks, fmt.Sprintf("%s:%d: %s", s.File, line, fmt.Sprintf(format, args...)))
	}
	if s.Title() == "" {
		remark(1, "the script does not begin with a comment; say there what it shows")
	}
	if mutations, err := s.Mutations(); err == nil && len(mutations) == 0 {
		remark(1, "no file %s lists what must make the script fail; see Mutations in docs/reference/scripts.md", script.MutationsFile)
	}
	commands := strings.Join(s.Lines(), "\n")
	for _, file := range s.Files() {
		if file.Name != script.MutationsFile && !strings.Contains(commands, file.Name) {
			remark(file.Line, "no command names the file %s", file.Name)
		}
	}
	return mistakes, remarks
}
