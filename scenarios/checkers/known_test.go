package checkers_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/scenarios/checkers"
)

// mended says for each known bad history which small change makes it good: text of
// its file that is there once, and what stands there instead.
var mended = map[string][2]string{
	"stale-read":        {`"start":2,"end":3`, `"start":1,"end":3`},
	"lost-update":       {`"sent":{"name":"snow","revision":5},"code":200,"objects":[{"kind":"ConfigMap","namespace":"default","name":"snow","uid":"u1","revision":7}]`, `"sent":{"name":"snow","revision":6},"code":200,"objects":[{"kind":"ConfigMap","namespace":"default","name":"snow","uid":"u1","revision":7}]`},
	"lost-write":        {`"closed":true`, `"closed":false`},
	"unstored-write":    {`"name":"snow","uid":"u1","revision":6`, `"name":"snow","uid":"u1","revision":8`},
	"needless-conflict": {`"start":2,"end":3`, `"start":1,"end":3`},
	"list-leaves-out":   {`"start":1,"end":2`, `"start":0,"end":2`},

	"watch-gap":      {`"event":"ADDED","object":{"kind":"ConfigMap","namespace":"default","name":"snow","uid":"u1","revision":5}}`, `"event":"ADDED","object":{"kind":"ConfigMap","namespace":"default","name":"snow","uid":"u1","revision":5}}` + "\n" + `{"type":"event","watch":1,"order":5,"event":"ADDED","object":{"kind":"ConfigMap","namespace":"default","name":"ice","uid":"u2","revision":6}}`},
	"watch-order":    {`"uid":"u1","revision":5`, `"uid":"u1","revision":7`},
	"watch-again":    {`"watch":2,"session":"b","uri":"/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=5"`, `"watch":2,"session":"b","uri":"/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=4"`},
	"watch-bookmark": {`{"kind":"ConfigMap","revision":6}`, `{"kind":"ConfigMap","revision":4}`},
	"watch-selector": {`{"type":"event","watch":1,"order":4,"event":"BOOKMARK"`, `{"type":"event","watch":1,"order":4,"event":"DELETED","object":{"kind":"ConfigMap","namespace":"default","name":"snow","uid":"u1","revision":6,"labels":"app=snow"}}` + "\n" + `{"type":"event","watch":1,"order":4,"event":"BOOKMARK"`},
	"watch-initial":  {`"revision":6}`, `"revision":6},"initialEventsEnd":true`},
	"watch-too-old":  {`"event":"ADDED","object":{"kind":"ConfigMap","namespace":"default","name":"ice","uid":"u2","revision":6}`, `"event":"ERROR","reason":"Expired"`},

	"list-after-watch": {`"order":2,"event":"BOOKMARK","object":{"kind":"ConfigMap","revision":7}`, `"order":2,"event":"ADDED","object":{"kind":"ConfigMap","namespace":"default","name":"ice","uid":"u2","revision":6}`},
	"list-without":     {`"order":2,"event":"ADDED","object":{"kind":"ConfigMap","namespace":"default","name":"snow","uid":"u1","revision":5}`, `"order":2,"event":"BOOKMARK","object":{"kind":"ConfigMap","revision":5}`},
	"two-contents":     {`"digest":"d2"`, `"digest":"d1"`},

	"cache-goes-back":  {`"start":1,"end":2`, `"start":0,"end":2`},
	"watch-then-older": {`"session":"a","server":"apiserver-0","method"`, `"session":"a","server":"apiserver-1","method"`},
	"older-than-asked": {`"revision":6`, `"revision":7`},

	"risen":             {`"uid":"u1","revision":9`, `"uid":"u2","revision":9`},
	"seen-after-delete": {`"uid":"u1","revision":9`, `"uid":"u2","revision":9`},
	"undeleted":         {`"revision":6,"finalizers":"example.com/f"`, `"revision":6,"finalizers":"example.com/f","deleting":true`},

	"deleted-at-once": {`{"type":"operation","session":"a","method":"DELETE"`, `{"type":"operation","session":"b","method":"PATCH","uri":"/api/v1/namespaces/default/configmaps/snow","start":0,"end":2,"error":"timeout"}` + "\n" + `{"type":"operation","session":"a","method":"DELETE"`},
	"finalizer-taken": {`"revision":6,"finalizers":"example.com/g"`, `"revision":6,"finalizers":"example.com/g,example.com/f"`},
	"gone-unmarked":   {`"revision":6,"finalizers":"example.com/f"`, `"revision":6,"finalizers":"example.com/f","deleting":true`},
}

// TestKnownBad rejects each known bad history by the check that it is for and by no
// other, and accepts it when it is mended.
func TestKnownBad(t *testing.T) {
	each := map[string]int{}
	for _, k := range checkers.KnownBad() {
		each[k.Breaks]++
		t.Run(k.Name, func(t *testing.T) {
			report := checkers.Check(t.Context(), k.History())
			require.NotEmpty(t, report.Findings())
			for _, f := range report.Findings() {
				assert.Equal(t, k.Breaks, f.Check, "%s", report)
				assert.Equal(t, checkers.Broken, f.Verdict)
				assert.NotEmpty(t, f.Evidence)
			}
			t.Logf("%s: %s", k.Why, report.Findings()[0])
			assert.Equal(t, checkers.Broken, report.Verdict())

			file, err := os.ReadFile("testdata/known/" + k.Name + ".jsonl")
			require.NoError(t, err)
			change, ok := mended[k.Name]
			require.True(t, ok, "say how it is mended")
			require.Equal(t, 1, strings.Count(string(file), change[0]), "the text to change must be there once")
			good, err := checkers.Read(strings.NewReader(strings.Replace(string(file), change[0], change[1], 1)))
			require.NoError(t, err)
			report = checkers.Check(t.Context(), good)
			assert.Equal(t, checkers.Holds, report.Verdict(), "mended: %s", report)
		})
	}
	for _, c := range checkers.All() {
		assert.GreaterOrEqual(t, each[c.Name()], 2, c.Name())
	}
	files, err := os.ReadDir("testdata/known")
	require.NoError(t, err)
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".jsonl")
		assert.True(t, slices.ContainsFunc(checkers.KnownBad(), func(k checkers.Known) bool { return k.Name == name }), "%s is a file that nobody names", name)
	}
}
