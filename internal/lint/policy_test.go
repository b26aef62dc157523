package lint

import (
	"fmt"
	"strings"
)

// policy says which package may import which. It has four kinds of lines:
//
//	A -> B C       package A may import B and C of this module, and whatever
//	               those may import
//	A (test) -> B  the tests of A may import B as well
//	A uses X Y     outside the standard library and this module, A imports only
//	               X and Y (its tests may import more)
//	X only A B     only A and B may import X, of this module or not
//
// A pattern that ends in /... covers a folder and everything below it. The most
// specific line that covers a package decides. A package that no line covers is a
// complaint, so every new package needs a decision.
const policy = `
	# The foundation: imports nothing of this module.
	internal/pki                     ->
	internal/nearest                 ->
	internal/serverlog               ->
	internal/conns                   ->
	internal/pins                    ->
	internal/etcdlog                 ->
	internal/lint                    ->
	internal/pages                   ->
	internal/watchframe              ->
	internal/observe                 -> envtest/trace internal/watchframe
	envtest/memnet                   ->
	envtest/trace                    ->
	envtest/process                  -> internal/etcdlog
	envtest/sim                      ->

	# Fakes know each other and nothing of envtest.
	fakes/...                        -> fakes/... internal/conns internal/pki
	fakes/... (test)                 -> envtest/memnet

	# Inside envtest.
	envtest/trace/report             -> envtest/trace
	envtest/fault                    -> envtest/trace internal/nearest
	envtest/virtualtime              -> envtest/fault envtest/sim
	envtest/serve                    -> envtest/memnet internal/conns
	envtest/storage                  ->
	envtest/storage/...              -> envtest/storage/... envtest/memnet fakes/... internal/conns internal/etcdlog
	envtest/storage/... (test)       -> internal/pki
	envtest/storage/intercept        -> envtest/fault envtest/memnet internal/conns
	envtest/storage/intercept (test) -> envtest/storage/memory internal/pki

	# The chain and its rooms.
	envtest/chain/upstream           ->
	envtest/chain/bootstrap          ->
	envtest/chain/inject             -> envtest/chain/upstream envtest/fault envtest/process envtest/storage/intercept internal/conns internal/watchframe
	envtest/chain/inject (test)      -> envtest/memnet
	envtest/chain/reststorage        -> envtest/fault envtest/storage envtest/storage/intercept
	envtest/chain/restore            -> envtest/chain/reststorage envtest/storage
	envtest/chain/settle             -> envtest/chain/reststorage envtest/fault
	envtest/chain/... (test)         -> envtest/chain/reststorage/reststoragetest
	envtest/chain/reststorage/reststoragetest -> envtest/chain/reststorage envtest/storage envtest/storage/intercept envtest/storage/memory
	envtest/chain                    -> envtest/chain/bootstrap envtest/chain/upstream envtest/chain/inject envtest/chain/reststorage envtest/chain/restore envtest/chain/settle envtest/process envtest/serve envtest/storage envtest/storage/intercept fakes/konnectivity internal/pki

	# The face.
	envtest                          -> envtest/chain envtest/chain/reststorage envtest/chain/restore envtest/memnet envtest/process envtest/serve envtest/storage/... envtest/virtualtime fakes/stub internal/observe internal/pki internal/nearest internal/serverlog
	envtest/nodes                    ->
	envtest/kubectl                  ->
	envtest/kubectl (test)           -> envtest
	envtest/objectcmp                ->
	envtest/matchers                 -> envtest/objectcmp
	envtest/events                   ->
	envtest/controllers              -> envtest internal/nearest
	envtest/controllers (test)       -> envtest/nodes
	envtest/controllerruntime        -> envtest
	envtest/controllerruntime (test) -> envtest/controllerruntime/envtest
	envtest/controllerruntime/envtest -> envtest

	envtest/client                   -> envtest/client/session envtest/virtualtime internal/serverlog
	envtest/client (test)            -> envtest/client/server
	envtest/client/session           ->
	envtest/client/server            -> envtest envtest/client/session

	envtest/soak                     ->
	envtest/soak (test)              -> envtest scenarios

	# The houses on top. Siblings never import each other.
	scenarios                        -> envtest envtest/controllers envtest/kubectl envtest/memnet envtest/nodes fakes/... internal/conns internal/nearest internal/observe internal/watchframe scenarios/checkers
	scenarios (test)                 -> internal/pages
	scenarios/checkers               -> envtest/trace internal/observe
	scenarios/explore                -> envtest/fault
	scenarios/explore/worker         -> envtest/sim scenarios scenarios/explore
	scenarios/explore/worker (test)  -> envtest
	conformance/...                  -> conformance/... envtest
	bench/...                        -> envtest
	cmd/...                          -> scenarios/... conformance/... bench/... envtest/client/server envtest/controllers envtest/nodes envtest/trace/report
	cmd/... (test)                   -> internal/pages

	# What is below the face is reached through the face.
	envtest/chain/...            only envtest envtest/chain/...
	envtest/serve                only envtest envtest/chain/...

	# What links the chain costs every importer a slow link.
	k8s.io/kubernetes/...        only envtest/chain envtest/chain/bootstrap envtest/controllers
	k8s.io/kubernetes/pkg/capabilities only envtest/chain envtest/soak

	# Leaves that stay light.
	envtest/trace                uses
	envtest/trace/report         uses
	envtest/memnet               uses
	internal/conns               uses
	internal/watchframe          uses k8s.io/apimachinery/...
	internal/observe             uses k8s.io/apimachinery/... k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 k8s.io/client-go/kubernetes/scheme sigs.k8s.io/yaml
	scenarios/checkers           uses k8s.io/apimachinery/... github.com/anishathalye/porcupine
	internal/nearest             uses
	internal/pages               uses
	internal/serverlog           uses
	internal/pki                 uses
`

// arrows is a parsed policy.
type arrows struct {
	may   map[string][]string // importer pattern -> patterns
	tests map[string][]string
	uses  map[string][]string
	only  map[string][]string // imported pattern -> importer patterns
}

func parsePolicy(text string) (*arrows, error) {
	a := &arrows{map[string][]string{}, map[string][]string{}, map[string][]string{}, map[string][]string{}}
	n := 0
	for l := range strings.Lines(text) {
		n++
		words := strings.Fields(l)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		subject, words := words[0], words[1:]
		verb := ""
		if len(words) > 0 {
			verb, words = words[0], words[1:]
		}
		kind := map[string]map[string][]string{"->": a.may, "uses": a.uses, "only": a.only}[verb]
		if verb == "(test)" && len(words) > 0 && words[0] == "->" {
			kind, words = a.tests, words[1:]
		}
		if kind == nil {
			return nil, fmt.Errorf("policy line %d: want ->, (test) ->, uses or only after %q", n, subject)
		}
		if _, twice := kind[subject]; twice {
			return nil, fmt.Errorf("policy line %d: %q is ruled twice", n, subject)
		}
		kind[subject] = words
	}
	return a, nil
}

// covers reports whether a pattern covers a package, or all that another
// pattern covers.
func covers(pattern, pkg string) bool {
	dir, below := strings.CutSuffix(pattern, "/...")
	return pattern == pkg || below && (pkg == dir || strings.HasPrefix(pkg, dir+"/"))
}

// ruling returns the most specific pattern that covers a package.
func ruling(rules map[string][]string, pkg string) (key string, ok bool) {
	for pattern := range rules {
		if covers(pattern, pkg) && (!ok || len(pattern) > len(key) || pattern == pkg) && key != pkg {
			key, ok = pattern, true
		}
	}
	return key, ok
}

// reach returns every pattern that may be imported from start, directly or
// indirectly.
func (a *arrows) reach(start []string) []string {
	var all []string
	seen := map[string]bool{}
	for todo := start; len(todo) > 0; todo = todo[1:] {
		p := todo[0]
		if seen[p] {
			continue
		}
		seen[p] = true
		all = append(all, p)
		for from, to := range a.may {
			if covers(p, from) {
				todo = append(todo, to...)
			} else if key, ok := ruling(a.may, strings.TrimSuffix(p, "/...")); ok && key == from {
				todo = append(todo, to...)
			}
		}
	}
	return all
}
