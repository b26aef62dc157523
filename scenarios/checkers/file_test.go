package checkers_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/scenarios/checkers"
)

// A history is the same after it was written and read.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(20) {
		h := newWorld(seed).run(200)
		h.Complete = true
		var first, second bytes.Buffer
		require.NoError(t, h.Write(&first))
		back, err := checkers.Read(bytes.NewReader(first.Bytes()))
		require.NoError(t, err)
		assert.Equal(t, h, back)
		require.NoError(t, back.Write(&second))
		assert.Equal(t, first.String(), second.String())
	}
}

const (
	aWatch  = `{"type":"watch","watch":1,"uri":"/api/v1/pods?watch=true","start":5}` + "\n"
	anEvent = `{"type":"event","watch":1,"order":7,"event":"ADDED"}` + "\n"
)

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":`:                    "history:1: not a record",
		"\n\n[]":                      "history:3: not a record",
		`{"type":"weather"}`:          `unknown type "weather"`,
		`{"type":"history"} {}`:       "not a record",
		`{"type":"operation"}`:        "no method or no URI",
		aWatch + aWatch:               "history:2: a watch has the number 1",
		aWatch + `{"type":"history"}`: `must be the first`,
		`{"type":"event","watch":1,"order":1,"event":"ADDED"}`:                                   "of watch 1, of which there is no line before it",
		aWatch + `{"type":"event","watch":1,"order":5,"event":"ADDED"}`:                          "not after the start at 5",
		aWatch + `{"type":"event","watch":1,"order":6,"event":"VANISHED"}`:                       `"VANISHED"`,
		aWatch + anEvent + `{"type":"event","watch":1,"order":6,"event":"ADDED"}`:                "history:3: an event has the order 6, and the one before it of the same watch 7",
		aWatch + `{"type":"event","watch":1,"order":6,"event":"ADDED","object":{"revision":-1}}`: "revision below 0",
		`{"type":"watch","watch":1,"start":1}`:                                                   "a watch has no URI",
		`{"type":"watch","watch":0,"uri":"/x","start":1}`:                                        "want one from 1",
		`{"type":"operation","method":"GET","uri":"/x","start":3,"end":3}`:                       "want an end after the start",
		`{"type":"operation","method":"GET","uri":"/x","start":3,"end":4,"code":99}`:             "no HTTP status",
		`{"type":"operation","method":"GET","uri":"/x","start":1,"objects":[{"revision":-2}]}`:   "revision below 0",
		`{"type":"operation","method":"GET","uri":"/x","start":9223372036854775807}`:             "more than",
		`{"type":"operation","method":"GET","uri":"/x","begin":1}`:                               `unknown field "begin"`,
		`{"type":"write","key":"a"}`:                                                             "want a key, a revision from 1 and an order",
		`{"type":"write","key":"a","revision":1,"created":true,"deleted":true}`:                  "both creates and deletes",
		strings.Repeat("x", 17<<20):                                                              "history:1: bufio.Scanner: token too long",
	} {
		_, err := checkers.Read(strings.NewReader(text))
		assert.ErrorContains(t, err, want, "%.80q", text)
	}
}

// An error names the file and the line.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(aWatch+"x\n"), 0o600))
	_, err := checkers.ReadFile(path)
	assert.ErrorContains(t, err, "run.jsonl:2: not a record")
	_, err = checkers.ReadFile(path + ".gone")
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = checkers.ReadFile("testdata/known/risen.jsonl")
	assert.NoError(t, err)
}

// FuzzRead reads anything, and writes what it has read so that it is read again.
// What can be read can be judged.
func FuzzRead(f *testing.F) {
	for _, k := range checkers.KnownBad() {
		f.Add([]byte(text(k.History())))
	}
	f.Add([]byte(text(newWorld(1).run(40))))
	f.Fuzz(func(t *testing.T, file []byte) {
		h, err := checkers.Read(bytes.NewReader(file))
		if err != nil {
			return
		}
		back, err := checkers.Read(strings.NewReader(text(h)))
		require.NoError(t, err)
		require.Equal(t, text(h), text(back))
		_ = checkers.Check(t.Context(), h).String()
	})
}

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
		assert.True(t, slices.ContainsFunc(checkers.KnownBad(), func(k checkers.Known) bool { return k.Name == name }), "%s is a file that KnownBad does not name", name)
	}
}
