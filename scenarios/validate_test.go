package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/pages"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

// manifest is the head of a file with an object, and the object.
const manifest = "-- a.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// TestValidate finds what is wrong before anything starts: all of it, each at its place.
func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   []string
	}{
		"empty":              {"", []string{"x.txtar:1: the script is empty: it has no command; snowglobe scenario new writes one to begin with"}},
		"comments only":      {"# Hello.\n\n" + manifest, []string{"x.txtar:1: the script is empty"}},
		"nothing asserted":   {"# Hello.\nstart\nadvance 1h\ntimeline\n", []string{"x.txtar:4: the script ends here and has asserted nothing"}},
		"only what may fire": {"hold store/put\nstart\ndrain a\n", []string{"x.txtar:3: the script ends here and has asserted nothing"}},
		"wrapped, no assert": {"start\nrepeat --times 2 readyz\n", []string{"asserted nothing"}},
		"all at once":        {"strat\nadvance 10\napply b.yaml\n", []string{`x.txtar:1: unknown command "strat"; did you mean start?`, `x.txtar:2: advance: wrong arguments: "10" is not a duration like 10m (usage: advance DURATION)`, `x.txtar:3: there is no file b.yaml in the script; it goes below the commands, after a line "-- b.yaml --"`}},
		"files of any command": {
			"cmp stdout a\nfaults b\norder c\nrequest PUT /x d\nmatch stdout e\nrelease hooks f\ncontroller x pods g\nnodes h\nfake audit i.example.com i\nanswer i.example.com j\nassert k\ngrep x l\n! eventually --for 1s apply m\n",
			[]string{"x.txtar:1: there is no file a in", ":2: there is no file b", ":3: there is no file c", ":4: there is no file d", ":5: there is no file e", ":6: there is no file f", ":7: there is no file g", ":8: there is no file h", ":9: there is no file i in", ":10: there is no file j", ":11: there is no file k", ":12: there is no file l", ":13: there is no file m"},
		},
		"a path that is not there": {"start\napply /no/such/file.yaml\n", []string{"x.txtar:2: stat /no/such/file.yaml: no such file or directory"}},
		"wrong YAML":               {"start\napply a.yaml\n-- b --\nb\n-- a.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: a\n", []string{"x.txtar:9: a.yaml: found character that cannot start any token"}},
		"wrong YAML in the second": {"start\napply a.yaml\n" + manifest + "---\n# more\nkind: [\n", []string{"x.txtar:9: a.yaml: did not find expected node content"}},
		"a tab":                    {"start\napply a.yaml\n-- a.yaml --\napiVersion: v1\n\tkind: ConfigMap\n", []string{"x.txtar:5: a.yaml: found a tab character that violates indentation"}},
		"wrong in the first line":  {"start\napply a.yaml\n-- a.yaml --\na: b: c\n", []string{"x.txtar:4: a.yaml: mapping values are not allowed in this context"}},
		"a key twice":              {"start\nready\nnodes a.yaml\n-- a.yaml --\n- never: true\n  never: false\n", []string{`x.txtar:6: a.yaml: key "never" already set in map`}},
		"no object":                {"start\nassert a.yaml\n-- a.yaml --\n\nname: a\n", []string{"x.txtar:5: a.yaml: this is not an object: it lacks an apiVersion or a kind"}},
		"nothing in it":            {"start\nassert a.yaml\n-- a.yaml --\n", []string{"x.txtar:4: a.yaml: no object in the file"}},
		"a file twice":             {"start\napply a.yaml\n" + manifest + manifest, []string{"x.txtar:7: the file a.yaml is there twice"}},
		"a wrong rule in a plan":   {"faults a\nstart\nready\n-- a --\n# of faults\nhold store/putt\n", []string{`x.txtar:6: a: column 6: unknown point "store/putt"; did you mean store/put?`}},
		"unknown field":            {"start\nready\nnodes a.yaml\n-- a.yaml --\n- {readyIn: 10s}\n", []string{`x.txtar:5: a.yaml: unknown field "readyIn"`}},
		"unknown resource":         {"start\nlist confmaps\nwatch all podz.apps\ninformer i deplyoments\n", []string{`x.txtar:2: list: wrong arguments: no resource is called "confmaps"; did you mean configmaps?`, `x.txtar:4: informer: wrong arguments: no resource is called "deplyoments"; did you mean deployments?`}},
		"no such condition's end":  {"[virtual]\nready\n!\n", []string{"x.txtar:1: a command is missing at the end of the line", "x.txtar:3: a command is missing"}},
		"a quote":                  {"ready\nstdout 'a\n", []string{"x.txtar:2: a quoted argument does not end"}},
		"a pattern":                {"start\nstdout '('\nstderr\nawait crash '['\n", []string{"x.txtar:2: stdout: error parsing regexp: missing closing )", "x.txtar:3: stderr: wrong arguments (usage: stderr [-count=N] PATTERN)", "x.txtar:4: await: wrong arguments: error parsing regexp"}},
		"a seed":                   {"seed seven\nready\n", []string{`x.txtar:1: seed: wrong arguments: a seed is a whole number from 0 on, not "seven"`}},
		"a late seed":              {"start\nseed 7\nready\n", []string{"x.txtar:2: seed is the first command of a script"}},
		"a seed twice":             {"seed 7\nclock 2026-11-27T09:00:00Z\nseed 8\nready\n", []string{"x.txtar:3: seed is the first command of a script"}},
		"a clock":                  {"clock tomorrow\nready\n", []string{`x.txtar:1: clock: wrong arguments: a time is written like 2026-11-27T09:00:00Z, not "tomorrow"`}},
		"an early clock":           {"clock 1999-11-27T09:00:00Z\nready\n", []string{"x.txtar:1: clock: wrong arguments: virtual time can begin between 2000-01-01T00:00:00Z and"}},
		"a clock under condition":  {"[linux] clock 2026-11-27T09:00:00Z\nready\n", []string{"x.txtar:1: clock has no condition, since it decides from the start"}},
		"a late clock":             {"start\nclock 2026-11-27T09:00:00Z\nready\n", []string{"x.txtar:2: clock is the first command of a script"}},
		"times without units":      {"start\neventually --for 5 ready\nas certificate 10 jane\ncandidate --retry-period 2 a b\n", []string{`x.txtar:2: eventually: invalid argument "5" for "--for" flag: time: missing unit in duration "5"`, `x.txtar:3: as: wrong arguments: "10" is not a duration like 1h`, `x.txtar:4: candidate: invalid argument "2" for`}},
		"bytes":                    {"ready\n\x00\n", []string{"x.txtar:2: this is not text"}},
		"another encoding":         {"# Gr\xfc\xdfe.\nready\n", []string{"x.txtar:1: this is not text; a script is a text file in UTF-8"}},
		"a byte order mark":        {"\uFEFFready\n", []string{"x.txtar:1: the file begins with a byte order mark; save it as UTF-8 without one"}},
		"a mutation of nothing": {
			"start\nready\n-- mutations.yaml --\n- {name: a, remove: ^ready}\n- {name: b, insert: apply b.yaml, after: start}\n",
			[]string{`x.txtar: mutation "a": it makes a script that can't be run: x.txtar:1: the script ends here and has asserted nothing`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := Validate(scriptOf(c.script))
			require.Error(t, err)
			lines := strings.Split(err.Error(), "\n")
			require.Len(t, lines, len(c.want), "%v", err)
			for i, want := range c.want {
				assert.Contains(t, lines[i], want)
			}
			assert.EqualError(t, Run(t.Context(), scriptOf(c.script), Options{}).Err, err.Error(), "a run says the same")
		})
	}
}

// TestValidateAccepts leaves alone what only a server can judge, or what is made on the way.
func TestValidateAccepts(t *testing.T) {
	there := filepath.Join(t.TempDir(), "there.yaml")
	require.NoError(t, os.WriteFile(there, nil, 0o600))
	for name, text := range map[string]string{
		"made by a command":    "get pods a\ncp stdout got\ncmp got want\n-- want --\n",
		"made by a program":    "local-exec sh -c 'echo a > b'\napply b\n",
		"made by a fake":       "fake oidc a.example.com\ngrep issuer a.example.com.authentication.yaml\n",
		"quoted":               "unquote a.yaml\napply a.yaml\n-- a.yaml --\n>a: b: c\n",
		"in another folder":    "cd folder\napply a.yaml\n-- folder/a.yaml --\n",
		"a folder's":           "apply ./folder/a.yaml\n-- folder/a.yaml --\napiVersion: v1\nkind: ConfigMap\n",
		"on disk":              "apply " + there + "\n",
		"variables":            "env A=b\napply $A.yaml\nadvance $A\n$A\nready\n",
		"variables in it":      "ready\napply --expand a.yaml\n-- a.yaml --\na: {$A\n",
		"too few, perhaps":     "ready\nanswer $A\nfake $A\ncontroller $A\nrequest $A\nnodes $A\nmatch $A\n",
		"resources of its own": "start\nlist configmapz\n-- crd.yaml --\nkind: CustomResourceDefinition\n",
		"short names":          "start\nget svc a\nlist netpol\nlist apiservices\nlist customresourcedefinitions\n",
		"must fail":            "! start -- --no-such-flag\n",
		"wrapped":              "start\neventually ! list pods\n",
		"for a person":         "start\nbreak\n",
		"line ends of Windows": "# Hello.\r\nstart\r\napply a.yaml\r\n\r\n-- a.yaml --\r\napiVersion: v1\r\nkind: ConfigMap\r\n",
	} {
		assert.NoError(t, Validate(scriptOf(text)), name)
	}
}

// TestEachCommandThatAsserts is a script of one command: it needs no other assertion.
func TestEachCommandThatAsserts(t *testing.T) {
	asserting := map[string]bool{}
	for _, command := range engine.AllCommands(commandsOf(script.Script{})) {
		asserting[command.Name] = command.Asserts
	}
	for name, want := range map[string]bool{
		"start": false, "shutdown": false, "advance": false, "timeline": false, "note": false, "hold": false, "request": false,
		"drain": false, "held": false, "settle": false, "informer": false, "skip": false, "cp": false,
		"expect": true, "never": true, "check": true, "assert": true, "match": true, "await": true, "next": true, "lister": true,
		"apply": true, "delete": true, "get": true, "kubectl": true, "whoami": true, "stdout": true, "cmp": true, "local-exec": true,
	} {
		asserts, known := asserting[name]
		assert.True(t, known, name)
		assert.Equal(t, want, asserts, name)
	}
}

// TestMessagesOfScripts finds what scripts are refused with in the page of messages.
func TestMessagesOfScripts(t *testing.T) {
	for _, text := range []string{
		"", "start\nadvance 1h\n", "strat\nready\n", "apply a.yaml\n", "ready\n\x00\n", "\uFEFFready\n",
		"apply a.yaml\n-- a.yaml --\na: b: c\n", "apply a.yaml\n-- a.yaml --\na: b\n", "list confmaps\n", "advance 10\nready\n",
		"start\nready\n-- mutations.yaml --\n- {name: a, remove: ^ready}\n",
		"start\napply a.yaml\n" + manifest + manifest,
		"start\nready\nnodes a.yaml\n-- a.yaml --\n- {readyIn: 10s}\n",
		"start\nready\nnodes a.yaml\n-- a.yaml --\n- never: true\n  never: false\n",
		"start\nassert a.yaml\n-- a.yaml --\n", "ready\nstdout 'a\n", "start\nseed 7\nready\n",
		"start\napply a.yaml\n" + manifest + "---\nkind: [\n",
		"start\napply a.yaml\n-- a.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: a\n",
		"start\napply a.yaml\n-- a.yaml --\napiVersion: v1\n\tkind: ConfigMap\n",
	} {
		err := Validate(scriptOf(text))
		require.Error(t, err, text)
		pages.Troubleshooting(t, "..", err.Error())
	}
}

// TestFileBesideScript says that a script reads no files but its own.
func TestFileBesideScript(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.yaml"), nil, 0o600))
	file := filepath.Join(folder, "x.txtar")
	err := Validate(script.Parse(file, []byte("apply a.yaml\n")))
	assert.EqualError(t, err, file+`:1: there is no file a.yaml in the script; the one in the folder of the script is not read; it goes below the commands, after a line "-- a.yaml --"`)
}

// TestRead refuses what no script is, without reading it all.
func TestRead(t *testing.T) {
	_, err := script.Read("/dev/zero")
	require.ErrorContains(t, err, "the name of a script ends in .txtar")
	pages.Troubleshooting(t, "..", err.Error())
	endless := filepath.Join(t.TempDir(), "endless.txtar")
	require.NoError(t, os.Symlink("/dev/zero", endless))
	_, err = script.Read(endless)
	require.ErrorContains(t, err, "it is longer than 16 MiB, and no script is")
	pages.Troubleshooting(t, "..", err.Error())
	_, err = script.Read(t.TempDir() + "/none.txtar")
	assert.ErrorContains(t, err, "no such file or directory")
}
