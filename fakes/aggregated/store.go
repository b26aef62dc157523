package aggregated

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"snowglobe.test/internal/broadcast"
)

// maxHistory is how many changes are kept. Those before them are compacted.
const maxHistory = 10_000

// key is where an object is.
type key struct {
	resource        schema.GroupResource
	namespace, name string
}

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.name, other.name))
}

// change is a write: of a new object if there is nothing before, of its end if there is
// nothing after.
type change struct {
	revision      int64
	key           key
	before, after *unstructured.Unstructured
}

// store has the objects and their history. Objects in it are never written to.
type store struct {
	mu        sync.Mutex
	revision  int64
	compacted int64 // there are no changes up to this revision
	objects   map[key]*unstructured.Unstructured
	history   []change // oldest first
	changed   broadcast.News
}

func newStore() *store {
	return &store{revision: 1, compacted: 1, objects: map[key]*unstructured.Unstructured{}}
}

func (s *store) get(k key) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[k]
}

// change lets a function make the next state of an object: of nil, there is none; the
// state itself, nothing changes. The function must not write to its argument. It returns
// the state then, or the last one of an object that has been deleted. A dry run
// changes nothing.
func (s *store) change(k key, dry bool, how func(current *unstructured.Unstructured) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.objects[k]
	next, err := how(current)
	if err != nil || next == current {
		return current, err
	}
	if dry {
		if next == nil {
			return current, nil
		}
		return next, nil
	}
	s.revision++
	result := next
	if next == nil {
		result = current.DeepCopy()
		delete(s.objects, k)
	} else {
		s.objects[k] = next
	}
	result.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	s.history = append(s.history, change{s.revision, k, current, next})
	if len(s.history) > maxHistory {
		s.compacted = s.history[maxHistory/2].revision
		s.history = slices.Clone(s.history[maxHistory/2+1:])
	}
	s.changed.Tell()
	return result, nil
}

// compact forgets the history.
func (s *store) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted, s.history = s.revision, nil
	s.changed.Tell()
}

// now is the revision of the latest change.
func (s *store) now() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// list returns the objects of a resource as they were at a revision, 0 meaning now, in
// the order of their names, and that revision. An empty namespace means all.
func (s *store) list(resource schema.GroupResource, namespace string, revision int64) ([]*unstructured.Unstructured, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision = cmp.Or(revision, s.revision)
	if revision < s.compacted {
		return nil, 0, apierrors.NewResourceExpired("the history before resource version " + strconv.FormatInt(s.compacted, 10) + " has been compacted")
	}
	found := map[key]*unstructured.Unstructured{}
	for k, object := range s.objects {
		if k.resource == resource && (namespace == "" || k.namespace == namespace) {
			found[k] = object
		}
	}
	for _, c := range slices.Backward(s.history) {
		if c.revision <= revision {
			break
		}
		if c.key.resource != resource || namespace != "" && c.key.namespace != namespace {
			continue
		}
		if c.before == nil {
			delete(found, c.key)
		} else {
			found[c.key] = c.before
		}
	}
	objects := make([]*unstructured.Unstructured, 0, len(found))
	for _, k := range slices.SortedFunc(maps.Keys(found), key.compare) {
		objects = append(objects, found[k])
	}
	return objects, revision, nil
}

// since returns the changes after a revision, the revision they lead to, and when to ask
// again.
func (s *store) since(revision int64) (changes []change, now int64, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision < s.compacted {
		return nil, 0, nil, apierrors.NewResourceExpired("too old resource version: " + strconv.FormatInt(revision, 10) + " (" + strconv.FormatInt(s.compacted, 10) + ")")
	}
	i, _ := slices.BinarySearchFunc(s.history, revision+1, func(c change, revision int64) int { return cmp.Compare(c.revision, revision) })
	return slices.Clone(s.history[i:]), s.revision, s.changed.Next(), nil
}
