package checkers_test

import (
	"bytes"
	"os"
	"path/filepath"
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
