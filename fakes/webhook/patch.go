package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// operation is one of a JSON patch, RFC 6902.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value *any   `json:"value,omitempty"` // nil for none; a value may be null
}

// jsonPatch returns a patch that makes after out of before, or nothing if they are
// equal. Its order depends on nothing else.
func jsonPatch(before, after map[string]any) ([]byte, error) {
	operations := compare(nil, "", before, after)
	if len(operations) == 0 {
		return nil, nil
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encode the JSON patch: %w", err)
	}
	return patch, nil
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// compare appends the operations for a value at a path.
func compare(to []operation, path string, before, after any) []operation {
	switch a := after.(type) {
	case map[string]any:
		if b, ok := before.(map[string]any); ok {
			return compareObjects(to, path, b, a)
		}
	case []any:
		if b, ok := before.([]any); ok {
			return compareArrays(to, path, b, a)
		}
	}
	if !reflect.DeepEqual(before, after) {
		to = append(to, operation{"replace", path, new(after)})
	}
	return to
}

func compareObjects(to []operation, path string, before, after map[string]any) []operation {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[key]; !kept {
			to = append(to, operation{Op: "remove", Path: path + "/" + pointerEscapes.Replace(key)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		at := path + "/" + pointerEscapes.Replace(key)
		if old, known := before[key]; known {
			to = compare(to, at, old, after[key])
		} else {
			to = append(to, operation{"add", at, new(after[key])})
		}
	}
	return to
}

// compareArrays changes elements in their places, and then adds or removes at the end.
func compareArrays(to []operation, path string, before, after []any) []operation {
	both := min(len(before), len(after))
	for i := range both {
		to = compare(to, path+"/"+strconv.Itoa(i), before[i], after[i])
	}
	for i := len(before) - 1; i >= both; i-- {
		to = append(to, operation{Op: "remove", Path: path + "/" + strconv.Itoa(i)})
	}
	for _, value := range after[both:] {
		to = append(to, operation{"add", path + "/-", new(value)})
	}
	return to
}
