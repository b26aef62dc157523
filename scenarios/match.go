package scenarios

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const matchDetails = `For an object, only the wanted fields are compared; for a list, all elements in order, or
just the first ones if the last wanted element is "...". Differences are listed with
their paths.`

var assertCommand = command{
	name:  "assert",
	args:  "FILE...",
	least: 1, most: anyNumber,
	summary: "fail unless the objects in files exist, with at least the fields given there",
	details: matchDetails,
	example: "assert widget.yaml\neventually assert status.yaml",
	run: func(ctx context.Context, s *session, args []string) error {
		for _, file := range args {
			objects, err := readObjects(s.ts.ReadFile(file))
			if err != nil {
				return fmt.Errorf("%w: %s: %w", errUsage, file, err)
			}
			for _, object := range objects {
				if err := s.assert(ctx, object); err != nil {
					return fmt.Errorf("%s: %s %q: %w", file, object.GetKind(), object.GetName(), err)
				}
			}
		}
		return nil
	},
}

var matchCommand = command{
	name:  "match",
	args:  "FILE WANT",
	least: 2, most: 2,
	summary: "fail unless YAML or JSON has at least the fields in another file",
	details: `Both are files; if FILE is stdout, it is what the last command printed.

` + matchDetails,
	example: "get configmaps settings\nmatch stdout settings-want.yaml",
	run: func(_ context.Context, s *session, args []string) error {
		var is, want any
		for i, into := range []*any{&is, &want} {
			if err := yaml.Unmarshal([]byte(s.ts.ReadFile(args[i])), into); err != nil {
				return fmt.Errorf("%w: %s: %w", errUsage, args[i], err)
			}
		}
		return mismatch(is, want)
	},
}

// assert compares an object of the server with the fields that are wanted.
func (s *session) assert(ctx context.Context, want *unstructured.Unstructured) error {
	r, err := s.resourceOf(ctx, want.GroupVersionKind())
	if err != nil {
		return err
	}
	if r.namespaced && want.GetNamespace() == "" {
		want.SetNamespace(defaultNamespace)
	}
	client, err := s.client(r, want.GetNamespace())
	if err != nil {
		return err
	}
	is, err := client.Get(ctx, want.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	return mismatch(is.Object, want.Object)
}

// mismatch is an error that lists all that differs from what is wanted, nil if nothing does.
func mismatch(is, want any) error {
	if found := differences("", is, want); len(found) > 0 {
		return errors.New("it does not match:\n\t" + strings.Join(found, "\n\t"))
	}
	return nil
}

// anyMore as the last element of a list that is wanted stands for all that follow.
const anyMore = "..."

// differences says in words where a value is not what is wanted, sorted by path.
func differences(path string, is, want any) []string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := is.(map[string]any)
		if !ok {
			return []string{differs(path, is, want)}
		}
		var found []string
		for _, key := range slices.Sorted(maps.Keys(want)) {
			below := strings.TrimPrefix(path+"."+key, ".")
			if value, there := object[key]; there {
				found = append(found, differences(below, value, want[key])...)
			} else {
				found = append(found, fmt.Sprintf("%s is missing, want %s", below, short(want[key])))
			}
		}
		return found
	case []any:
		list, ok := is.([]any)
		if !ok {
			return []string{differs(path, is, want)}
		}
		return listDifferences(path, list, want)
	}
	if equalValues(is, want) {
		return nil
	}
	return []string{differs(path, is, want)}
}

func listDifferences(path string, is, want []any) []string {
	more := len(want) > 0 && want[len(want)-1] == anyMore
	if more {
		want = want[:len(want)-1]
	}
	var found []string
	for i := range min(len(is), len(want)) {
		found = append(found, differences(fmt.Sprintf("%s[%d]", path, i), is[i], want[i])...)
	}
	if len(is) < len(want) || len(is) > len(want) && !more {
		found = append(found, fmt.Sprintf("%s has %d elements, want %d", path, len(is), len(want)))
	}
	return found
}

// equalValues compares scalars: numbers by value, since YAML reads all as float64 and
// the server sends integers.
func equalValues(is, want any) bool {
	a, b := reflect.ValueOf(is), reflect.ValueOf(want)
	if a.IsValid() && b.IsValid() && a.CanConvert(floatType) && b.CanConvert(floatType) {
		return a.Convert(floatType).Float() == b.Convert(floatType).Float()
	}
	return reflect.DeepEqual(is, want)
}

var floatType = reflect.TypeFor[float64]()

func differs(path string, is, want any) string {
	return strings.TrimSpace(fmt.Sprintf("%s is %s, want %s", path, short(is), short(want)))
}

// longestShown bounds the values in a list of differences.
const longestShown = 120

// short is a value on one line.
func short(value any) string {
	text := fmt.Sprintf("%v", value)
	if s, ok := value.(string); ok {
		text = fmt.Sprintf("%q", s)
	}
	if runes := []rune(text); len(runes) > longestShown {
		text = string(runes[:longestShown]) + "..."
	}
	return text
}
