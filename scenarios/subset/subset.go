// Package subset compares values that were read from YAML or JSON with the parts of them
// that are wanted.
package subset

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// anyMore as the last element of a list that is wanted stands for all that follow.
const anyMore = "..."

// Differences says in words where a value is not what is wanted, sorted by path.
func Differences(is, want any) []string { return differences("", is, want) }

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
