package webhook

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

var patches = []struct{ before, after, want string }{
	{`{}`, `{}`, ``},
	{`{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`, ``},
	{`{"a":1}`, `{"a":2}`, `[{"op":"replace","path":"/a","value":2}]`},
	{`{"a":1}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
	{`{"b":1,"a":1}`, `{"d":1,"c":{"x":1}}`,
		`[{"op":"remove","path":"/a"},{"op":"remove","path":"/b"},{"op":"add","path":"/c","value":{"x":1}},{"op":"add","path":"/d","value":1}]`},
	{`{"a/b":{"~c":1}}`, `{"a/b":{"~c":2}}`, `[{"op":"replace","path":"/a~1b/~0c","value":2}]`},
	{`{"a":[1,2,3,4]}`, `{"a":[1,9]}`, `[{"op":"replace","path":"/a/1","value":9},{"op":"remove","path":"/a/3"},{"op":"remove","path":"/a/2"}]`},
	{`{"a":[]}`, `{"a":[{"x":1},[]]}`, `[{"op":"add","path":"/a/-","value":{"x":1}},{"op":"add","path":"/a/-","value":[]}]`},
	{`{"a":[1]}`, `{"a":{"0":1}}`, `[{"op":"replace","path":"/a","value":{"0":1}}]`},
	{`{"a":[{"x":1,"y":1}]}`, `{"a":[{"x":2}]}`, `[{"op":"remove","path":"/a/0/y"},{"op":"replace","path":"/a/0/x","value":2}]`},
	{`{"":{"":1}}`, `{"":{"":2}}`, `[{"op":"replace","path":"//","value":2}]`},
}

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &object), text)
	return object
}

func TestJSONPatch(t *testing.T) {
	for _, c := range patches {
		got, err := jsonPatch(decode(t, c.before), decode(t, c.after))
		require.NoError(t, err)
		assert.Equal(t, c.want, string(got), "%s to %s", c.before, c.after)
	}
}

// FuzzJSONPatch has the API server's library apply the patch.
func FuzzJSONPatch(f *testing.F) {
	for _, c := range patches {
		f.Add(c.before, c.after)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		var from, to map[string]any
		if json.Unmarshal([]byte(before), &from) != nil || json.Unmarshal([]byte(after), &to) != nil || from == nil || to == nil {
			t.Skip("not two objects")
		}
		patch, err := jsonPatch(from, to)
		require.NoError(t, err)
		document, err := json.Marshal(from)
		require.NoError(t, err)
		if patch != nil {
			decoded, err := jsonpatch.DecodePatch(patch)
			require.NoError(t, err)
			document, err = decoded.Apply(document)
			require.NoError(t, err, "%s", patch)
		}
		assert.Equal(t, to, decode(t, string(document)), "%s", patch)
	})
}
