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
	internal/manifests               ->
	internal/nearest                 ->
	internal/serverlog               -> internal/redact
	internal/broadcast               ->
	internal/conns                   ->
	internal/shrink                  ->
	internal/turn                    ->
	internal/typename                ->
	internal/wall                    ->
	internal/pins                    ->
	internal/etcdlog                 ->
	internal/gobuild                 -> internal/group internal/tempdir
	internal/stock                   -> internal/gobuild internal/releases
	internal/releases                -> internal/gobuild
	internal/group                   ->
	internal/light                   ->
	internal/diskerr (test)          -> internal/pages
	internal/left                    ->
	internal/lint                    ->
	internal/lint (test)             -> internal/pages
	internal/listeners               ->
	internal/diskerr                 ->
	internal/pages                   ->
	internal/sample                  ->
	internal/watchfilter             ->
	internal/home                    ->
	internal/redact                  ->
	internal/redact (test)           -> internal/pki
	internal/tempdir                 ->
	internal/unixsocket              ->
	internal/hostile                 ->
	internal/hostile/run             -> internal/home internal/hostile
	internal/watchframe              ->
	internal/htmlpage                ->
	internal/memfile                 -> internal/tempdir
	internal/outfile                 -> internal/diskerr
	internal/observe                 -> envtest/trace internal/watchframe
	envtest/memnet                   ->
	envtest/trace                    -> internal/redact
	envtest/process                  -> internal/etcdlog internal/left internal/redact internal/typename
	envtest/sim                      -> internal/gobuild internal/light internal/outfile
	envtest/sim (test)               -> internal/hostile internal/pages internal/sample
	envtest/sim/seeds                -> envtest/sim internal/conns internal/group internal/tempdir internal/unixsocket

	# Fakes know each other and nothing of envtest.
	fakes/...                        -> fakes/... internal/broadcast internal/conns internal/pki
	fakes/... (test)                 -> envtest/memnet internal/listeners
	fakes/etcd/internal/keyspace     ->
	fakes/etcd/internal/client       -> fakes/etcd/internal/keyspace
	fakes/etcd/internal/services     -> fakes/etcd/internal/keyspace internal/conns

	# Inside envtest.
	envtest/trace/report             -> envtest/trace internal/htmlpage
	envtest/fault                    -> envtest/trace internal/broadcast internal/nearest
	envtest/fault/edge               -> envtest/fault
	envtest/virtualtime              -> envtest/fault envtest/sim internal/typename
	envtest/virtualtime (test)       -> envtest/fault/edge internal/pages internal/sample
	envtest/serve                    -> envtest/memnet internal/conns
	envtest/component                -> envtest/process envtest/trace internal/serverlog
	envtest/webhook                  -> envtest/memnet fakes/stub
	envtest/storage                  ->
	envtest/linked                   ->
	envtest/pool                     ->
	envtest/serverflags              ->
	envtest/storage/...              -> envtest/storage/... envtest/memnet fakes/... internal/broadcast internal/conns internal/diskerr internal/etcdlog internal/tempdir internal/pki internal/left
	envtest/storage/... (test)       -> internal/listeners internal/pki internal/pages internal/sample internal/watchfilter
	envtest/storage/intercept        -> envtest/fault/edge envtest/memnet internal/conns internal/turn internal/left
	envtest/storage/intercept (test) -> envtest/storage/memory internal/pki

	# The chain and its parts.
	envtest/chain/upstream           -> internal/turn
	envtest/chain/bootstrap          ->
	envtest/chain/egress             -> envtest/fault/edge envtest/storage envtest/storage/intercept fakes/konnectivity
	envtest/chain/inject             -> envtest/chain/upstream envtest/fault/edge envtest/process envtest/storage/intercept internal/conns internal/watchframe
	envtest/chain/inject (test)      -> envtest/memnet
	envtest/chain/reststorage        -> envtest/fault/edge envtest/storage envtest/storage/intercept internal/broadcast
	envtest/chain/restore            -> envtest/chain/reststorage envtest/storage internal/broadcast internal/turn
	envtest/chain/settle             -> envtest/chain/reststorage envtest/fault internal/broadcast
	envtest/chain/... (test)         -> envtest/chain/reststorage/reststoragetest internal/hostile internal/watchfilter
	envtest/chain/reststorage/reststoragetest -> envtest/chain/reststorage envtest/storage envtest/storage/intercept envtest/storage/memory
	envtest/chain                    -> envtest/chain/bootstrap envtest/chain/egress envtest/chain/upstream envtest/chain/inject envtest/chain/reststorage envtest/chain/restore envtest/chain/settle envtest/process envtest/serve envtest/storage envtest/storage/intercept internal/memfile envtest/linked

	# The face.
	envtest                          -> envtest/chain envtest/chain/reststorage envtest/chain/restore envtest/process envtest/serve envtest/storage/... envtest/component envtest/pool envtest/serverflags envtest/virtualtime envtest/webhook internal/observe internal/pki internal/left internal/serverlog internal/memfile internal/diskerr internal/manifests
	envtest (test)                   -> envtest/kubectl internal/hostile internal/pages internal/sample envtest/linked
	envtest/nodes                    ->
	envtest/kubectl                  -> internal/tempdir internal/light
	envtest/kubectl (test)           -> internal/hostile
	envtest/controllers              -> envtest internal/nearest
	envtest/controllers (test)       -> envtest/kubectl envtest/nodes envtest/linked
	envtest/controllerruntime        -> envtest internal/manifests
	envtest/controllerruntime (test) -> envtest/controllerruntime/envtest internal/home internal/sample
	envtest/controllerruntime/arguments ->
	envtest/controllerruntime/envtest -> envtest envtest/controllerruntime/arguments envtest/serverflags internal/pki internal/tempdir envtest/linked

	envtest/session                  ->
	envtest/session/server           -> envtest envtest/fault envtest/pool envtest/serverflags envtest/session envtest/trace internal/serverlog envtest/linked

	envtest/soak                     ->
	envtest/soak (test)              -> envtest scenarios internal/hostile

	# The houses on top. Siblings never import each other.
	scenarios                        -> envtest/process internal/tempdir scenarios/engine scenarios/commands/...
	scenarios (test)                 -> internal/hostile internal/pages internal/sample scenarios/explore/worker
	scenarios/checkers               -> envtest/trace internal/observe internal/shrink
	scenarios/checkers (test)        -> internal/sample
	scenarios/script                 ->
	scenarios/story                  -> envtest/fault internal/redact
	scenarios/engine                 -> envtest/virtualtime internal/nearest scenarios/script scenarios/story
	scenarios/subset                 ->
	scenarios/encoding               ->
	scenarios/commands/servers          -> envtest internal/wall scenarios/encoding scenarios/engine
	scenarios/commands/clients          -> envtest/kubectl internal/broadcast internal/light internal/manifests internal/observe internal/watchframe scenarios/commands/servers
	scenarios/commands/fakes            -> envtest/memnet fakes/... internal/conns scenarios/subset scenarios/commands/servers
	scenarios/commands/programs         -> envtest/controllers envtest/nodes internal/light scenarios/subset scenarios/commands/clients
	scenarios/commands/checks           -> internal/wall scenarios/checkers scenarios/subset scenarios/commands/clients
	scenarios/explore                -> envtest/fault internal/diskerr internal/outfile internal/shrink scenarios/script
	scenarios/explore/worker         -> envtest/sim internal/group scenarios scenarios/explore
	conformance/...                  -> conformance/... envtest envtest/process fakes/... internal/outfile
	conformance/transcript           -> internal/redact internal/watchframe
	conformance/engine               -> conformance/transcript envtest/virtualtime
	conformance/reports              -> conformance/engine conformance/transcript envtest/linked internal/htmlpage internal/outfile
	conformance/store                -> conformance/engine conformance/transcript envtest/storage/external
	conformance/target               -> conformance/engine conformance/ledger conformance/suite envtest internal/stock envtest/linked
	conformance/cases                ->
	conformance (test)               -> internal/pages internal/sample
	bench/...                        -> bench/... envtest internal/outfile internal/stock envtest/linked
	bench/results                    -> bench/load bench/measure internal/htmlpage internal/outfile
	bench/wire                       ->
	bench/load                       -> bench/child bench/measure bench/wire fakes/webhook internal/nearest internal/watchframe
	bench/baseline                   -> bench/load envtest/storage/... internal/pki
	bench/child                      -> internal/group
	bench/measure                    -> internal/stock internal/tempdir
	bench/search                     -> envtest/sim envtest/sim/seeds internal/group internal/outfile internal/tempdir
	bench/search (test)              -> internal/sample
	bench/startup                    -> bench/child bench/measure envtest envtest/storage/embedded envtest/linked
	bench (test)                     -> internal/pages
	cmd/snowglobe/etcdmain           -> envtest/memnet fakes/etcd internal/unixsocket
	cmd/snowglobe/etcdmain (test)    -> internal/pki
	cmd/...                          -> cmd/... scenarios/... conformance/... bench/... envtest/session/server envtest/controllers envtest/nodes envtest/sim/seeds envtest/trace/report internal/gobuild internal/group internal/light internal/outfile internal/releases internal/tempdir internal/unixsocket envtest/linked
	cmd/... (test)                   -> envtest/controllerruntime/envtest internal/home internal/pages internal/listeners internal/sample

	# What is below the face is reached through the face.
	envtest/chain/...            only envtest envtest/chain/...
	envtest/serve                only envtest envtest/chain/...

	# Who writes rules needs package fault alone; this is for the edges that ask about operations.
	envtest/fault/edge           only envtest/chain/... envtest/storage/intercept envtest/virtualtime

	# What links the chain costs every importer a slow link.
	k8s.io/kubernetes/...        only envtest/chain envtest/chain/bootstrap envtest/controllers envtest/linked envtest/serverflags
	k8s.io/kubernetes/pkg/capabilities only envtest/chain envtest/soak

	# Leaves that stay light.
	envtest/trace                uses
	envtest/trace/report         uses
	envtest/memnet               uses
	internal/broadcast           uses
	internal/conns               uses
	internal/shrink              uses
	internal/turn                uses
	internal/wall                uses
	internal/group               uses
	envtest/sim/seeds            uses
	internal/watchframe          uses k8s.io/apimachinery/... github.com/fxamacker/cbor/v2
	internal/observe             uses k8s.io/apimachinery/... k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 k8s.io/client-go/kubernetes/scheme k8s.io/streaming/pkg/httpstream sigs.k8s.io/yaml
	scenarios/checkers           uses k8s.io/apimachinery/... k8s.io/apiserver/pkg/endpoints/request github.com/anishathalye/porcupine
	internal/listeners           uses github.com/prometheus/procfs
	internal/nearest             uses github.com/agnivade/levenshtein
	internal/pages               uses
	internal/hostile             uses
	internal/serverlog           uses
	internal/pki                 uses k8s.io/client-go/util/keyutil
	internal/redact              uses
	internal/tempdir             uses github.com/gofrs/flock
	internal/gobuild             uses
	internal/light               uses
	internal/unixsocket          uses
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
