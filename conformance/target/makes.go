package target

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"snowglobe.test/conformance/engine"
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

// notice tells what cases make on a cluster.
func notice(cluster *suite.Cluster, cases []engine.Info) string {
	n, seen := 0, sets.New[string]()
	for _, c := range cases {
		if makes := Makes(c.ID); len(makes) > 0 && cluster.Unmet(c) == "" {
			n++
			seen.Insert(makes...)
		}
	}
	if n == 0 {
		return fmt.Sprintf("Nothing is made at %s.\n", cluster.Name)
	}
	made := sets.List(seen)
	if i := slices.Index(made, "namespaces"); i >= 0 {
		made[i] += ", and objects in them"
	}
	return fmt.Sprintf(`At %s, %d cases make objects whose names contain %q:
  %s
They are removed at the end, also after Ctrl-C. Nothing else there is changed, and no server is launched.
`, cluster.Name, n, suite.NamePrefix, strings.Join(made, "\n  "))
}
