package conformance

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"snowglobe.test/conformance/suite"
)

// makesFile has, by case, what is made outside the namespaces that the case makes.
//
//go:embed makes.json
var makesFile []byte

// Makes returns what a case makes on its target outside the namespaces that it makes itself:
// resources like "clusterroles.rbac.authorization.k8s.io" and "secrets in kube-system". Control
// planes that it launches are not the target.
func Makes(id string) []string {
	var makes map[string][]string
	if err := json.Unmarshal(makesFile, &makes); err != nil {
		panic(err) // it is in the program
	}
	return makes[id]
}

// Announced has the run say, before its first case, what the cases make on a cluster that
// outlives it.
func Announced(w io.Writer) RunOption { return func(e *execution) { e.notices = w } }

// announce says what the cases make on the cluster.
func (e *execution) announce(cases []suite.Case) {
	if e.cluster.Ledger == nil {
		return
	}
	n, made := 0, sets.New[string]()
	for _, c := range cases {
		if makes := Makes(c.ID); len(makes) > 0 && c.Unmet(e.cluster) == "" {
			n++
			made.Insert(makes...)
		}
	}
	// An output that is gone does not end the run.
	_, _ = io.WriteString(e.notices, notice(e.cluster.Name, n, sets.List(made)))
}

// notice tells what n cases make on a cluster.
func notice(cluster string, n int, made []string) string {
	if n == 0 {
		return fmt.Sprintf("Nothing is made at %s.\n", cluster)
	}
	if i := slices.Index(made, "namespaces"); i >= 0 {
		made[i] += ", and objects in them"
	}
	return fmt.Sprintf(`At %s, %d cases make objects whose names contain %q:
  %s
They are removed at the end, also after Ctrl-C. Nothing else there is changed, and no server is launched.
`, cluster, n, suite.NamePrefix, strings.Join(made, "\n  "))
}
