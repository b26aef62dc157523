package fault

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var known = Names{
	"hook":     {"start-apiextensions-informers", "crd-informer-synced", "rbac/bootstrap-roles"},
	"resource": {"pods", "configmaps", "leases.coordination.k8s.io"},
	"server":   {"alpha", "beta"},
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Rule{
		"fail store/put resource=configmaps name=default/a nth=2 with=unavailable": {
			Action: Action{Kind: Fail, With: Unavailable},
			Match: Match{Point: "store/put", Resource: "configmaps", Namespace: "default", Name: "a",
				Nth: Range{2, 2}},
		},
		"lose-reply http/update resource=leases.coordination.k8s.io caller=system:apiserver times=1": {
			Action: Action{Kind: LoseReply},
			Match: Match{Point: "http/update", Resource: "leases.coordination.k8s.io", Caller: "system:apiserver",
				Times: 1},
		},
		"delay store/watch-event verb=put resource=pods probability=0.2 by=3s optional": {
			Action: Action{Kind: Delay, By: 3 * time.Second}, Optional: true,
			Match: Match{Point: "store/watch-event", Verb: "put", Resource: "pods", Probability: 0.2},
		},
		`hold store/put caller="a#b"`: {Action: Action{Kind: Hold}, Match: Match{Point: "store/put", Caller: "a#b"}},
		"hold store/put until=1h":     {Action: Action{Kind: Hold}, Match: Match{Point: "store/put", Until: time.Hour}},
		"hold store/put until=1h40m": {Action: Action{Kind: Hold},
			Match: Match{Point: "store/put", Until: 100 * time.Minute}},
		"hold store/put until=10s": {Action: Action{Kind: Hold},
			Match: Match{Point: "store/put", Until: 10 * time.Second}},
		"hold hook/start-*":         {Action: Action{Kind: Hold}, Match: Match{Point: "hook/start-*"}},
		"hold hook/rbac/bootstrap*": {Action: Action{Kind: Hold}, Match: Match{Point: "hook/rbac/bootstrap*"}},
		"freeze cache/pods at=1200": {Action: Action{Kind: Freeze, At: 1200}, Match: Match{Point: "cache/pods"}},
		"drop store/* namespace=kube-system key=/registry/pods/ nth=2..5 every=3 after=5s for=30s": {
			Action: Action{Kind: Drop},
			Match: Match{
				Point: "store/*", Namespace: "kube-system", KeyPrefix: "/registry/pods/", Nth: Range{2, 5}, Every: 3,
				After: 5 * time.Second, For: 30 * time.Second,
			},
		},
		`fail http/create phase=after server=alpha caller="Jane \"J\" Doe # 1" nth=3.. until=1m30s with=503 retry-after=2s`: {
			Action: Action{Kind: Fail, With: ServiceUnavailable, RetryAfter: 2 * time.Second},
			Match: Match{
				Point: "http/create", Phase: After, Server: "alpha", Caller: `Jane "J" Doe # 1`, Nth: Range{First: 3},
				Until: 90 * time.Second,
			},
		},
	} {
		got, err := Parse(text, known)
		if assert.NoError(t, err, text) {
			assert.Empty(t, cmp.Diff(want, got), text)
			assert.Equal(t, text, got.String())
			assert.NoError(t, got.Validate(known))
		}
	}
}

// What may be written in another way is printed in one.
func TestParseAnyOrder(t *testing.T) {
	rule, err := Parse("\tfail   store/put optional with=unavailable name=a namespace=\"default\" times=1 # why", nil)
	require.NoError(t, err)
	assert.Equal(t, "fail store/put name=default/a times=1 with=unavailable optional", rule.String())
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                     {"column 1: there is no rule"},
		" # nothing":                           {"column 1: there is no rule"},
		"hold a\nhold b":                       {"a rule is one line"},
		"fall store/put":                       {`column 1: unknown action "fall"; did you mean fail?`},
		"name=x":                               {"column 1: a rule begins with an action: hold, delay"},
		"hold":                                 {"column 5: after the action comes a point"},
		"hold name=x":                          {"column 5: after the action comes a point"},
		"hold store/pu":                        {`column 6: unknown point "store/pu"; did you mean store/put?`},
		"hold stroe/put":                       {"did you mean store/put?"},
		"hold store":                           {`unknown point "store"`},
		"hold */put":                           {`unknown point "*/put"`},
		"hold st=re/put":                       {"column 5: after the action comes a point"},
		"hold weather/sunny":                   {`unknown point "weather/sunny"; there are`},
		"hold hook/crd-infromer-synced":        {"did you mean hook/crd-informer-synced?"},
		"hold hook/nothing-*":                  {`unknown point "hook/nothing-*"`},
		"hold cache/pod":                       {"did you mean cache/pods?"},
		"hold egress/custer":                   {"did you mean egress/cluster?"},
		"hold http/updaet":                     {"did you mean http/update?"},
		"hold informer/pods verb=lst":          {`column 20: unknown verb "lst" at informer/pods; did you mean list?`},
		"hold store/put verb=put":              {"operations at store/put have no verb of their own"},
		"hold http/get verb=get":               {"operations at http/get have no verb of their own"},
		"hold http/get resource=pod/status":    {`column 15: unknown resource "pod"; did you mean pods?`},
		"hold store/put resource=configmap":    {`column 16: unknown resource "configmap"; did you mean configmaps?`},
		"hold store/put resource=secrets":      {`unknown resource "secrets"; there is pods, configmaps or leases.coordination.k8s.io`},
		"hold store/put server=gamma":          {`unknown server "gamma"; there is alpha or beta`},
		"hold http/get phase=aftr":             {`unknown phase "aftr"; did you mean after?`},
		"hold store/put phase=after":           {"there is no phase after at store/put"},
		"hold hook/crd-informer-synced name=a": {"operations at hook/crd-informer-synced carry no name"},
		"hold store/lease-grant namespace=a":   {"carry no namespace"},
		"hold cache/pods caller=a":             {"column 17: operations at cache/pods carry no caller"},
		"duplicate store/range": {"column 1: duplicate means nothing at store/range; there is " +
			"cancel, compact"},
		"duplicate http/get phase=after": {"duplicate means nothing at http/get"},
		"fail informer/pods verb=sync with=500": {"fail means nothing at informer/pods; there is crash, delay, " +
			"drop or hold"},
		"fail store/put": {"column 1: fail at store/put needs with=; there is " +
			"leader-changed, no-leader"},
		"fail store/put with=unavailabel": {`column 16: unknown error "unavailabel"; did you mean unavailable?`},
		"fail store/put with=503": {"column 16: 503 is no error of store/put; there is " +
			"leader-changed"},
		"fail store/put with=compacted":             {"compacted is no error of store/put"},
		"lose-reply http/update with=refused":       {"refused is no error of http/update; there is 410, 429"},
		"hold store/put with=503":                   {"with= is for fail or lose-reply, not for hold"},
		"hold store/put by=3s":                      {"by= is for delay or fire, not for hold"},
		"delay store/put":                           {"column 1: a delay needs by="},
		"delay store/put by=3":                      {`column 17: by= is a time above 0, such as 3s or 250ms, not "3"`},
		"delay store/put by=-3s":                    {"by= is a time above 0"},
		"freeze store/put":                          {"freeze means nothing at store/put"},
		"hold cache/pods at=3":                      {"at= is for freeze, not for hold"},
		"freeze cache/pods at=-3":                   {"at= is a whole number above 0"},
		"fail http/get with=500 retry-after=2s":     {"retry-after= goes with 429 and 503 only"},
		"fail http/get with=503 retry-after=2.5s":   {"a number of whole seconds"},
		"hold store/put nth=0":                      {"nth= is a number from 1 on, or a range"},
		"hold store/put nth=5..2":                   {"nth= is a number from 1 on"},
		"hold store/put nth=2..0":                   {"nth= is a number from 1 on"},
		"hold store/put nth=..2":                    {"nth= is a number from 1 on"},
		"hold store/put every=0":                    {"every= is a whole number above 0"},
		"hold store/put times=99999999999999999999": {"times= is a whole number above 0"},
		"hold store/put probability=0":              {"probability= is a number above 0, at most 1"},
		"hold store/put probability=1.1":            {"probability= is a number above 0"},
		"hold store/put probability=NaN":            {"probability= is a number above 0"},
		"hold store/put for=1s until=2s":            {"column 23: for= or until=, not both"},
		"hold store/put after=2s until=2s":          {"until= must be later than after="},
		"hold store/put name=/a":                    {"name= is NAME or NAMESPACE/NAME"},
		"hold store/put name=a/":                    {"for all of a namespace say namespace="},
		"hold store/put name=a/b/c":                 {"neither a name nor a namespace has a slash in it"},
		"hold store/put namespace=a name=b/c":       {"column 28: the namespace is said twice"},
		"hold store/put name=":                      {"column 16: name= has no value"},
		"hold store/put name=a name=a":              {"column 23: name= is there twice"},
		"hold store/put nmae=a":                     {`unknown key "nmae"; did you mean name`},
		"hold store/put optionl":                    {`not "optionl"; did you mean optional?`},
		`hold store/put name="a`:                    {"column 16: a quoted value does not end"},
		`hold store/put name="a"b`:                  {"something right after a quoted value"},
		`hold store/put name=a"b`:                   {"a value with '\"' in it is quoted"},
		"hold store/put name=a#b":                   {"a value with '#' in it is quoted"},
		`hold store/put "optional"`:                 {"not \"optional\""},
		// Of paths.
		"partition store/put":                  {"partition means nothing at store/put; there is"},
		"partition stroe":                      {`unknown point "stroe"; did you mean store?`},
		"partition store nth=2":                {"nth=, every=, times= and probability= choose among operations"},
		"partition store server=gamma":         {`unknown server "gamma"; there is alpha or beta`},
		"partition store name=a":               {"operations at store carry no name"},
		"partition client name=default/a":      {"operations at client carry no namespace"},
		"partition client with=reset":          {"with= is for fail or lose-reply, not for partition"},
		"partition client after=3s until=2s":   {"until= must be later than after="},
		"fail client name=client-1 with=reset": {`unknown point "client"`},
		// All at once.
		"fail store/put nth=0 by=x with=500": {"column 16: nth=", "column 22: by="},
		"fall store/pu resource=pod": {"column 1: unknown action", "column 6: unknown point",
			"column 15: unknown resource"},
	} {
		_, err := Parse(text, known)
		if !assert.Error(t, err, text) {
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if assert.Len(t, lines, len(want), "%s\n%s", text, err) {
			for i := range want {
				assert.Contains(t, lines[i], want[i], text)
			}
		}
	}
}

// A rule that is made in Go is refused for the same reasons as one in text, and
// for those that text can't have.
func TestValidateRefuses(t *testing.T) {
	point := func(m Match) Match { m.Point = "store/put"; return m }
	for want, rule := range map[string]Rule{
		`unknown action ""`:              {Match: Match{Point: "store/put"}},
		`unknown point ""`:               {Action: Action{Kind: Hold}},
		"a delay needs by=":              {Action: Action{Kind: Delay}, Match: point(Match{})},
		"by= is a time above 0":          {Action: Action{Kind: Delay, By: -1}, Match: point(Match{})},
		"at= is a whole number above 0":  {Action: Action{Kind: Freeze, At: -1}, Match: Match{Point: "cache/pods"}},
		"nth= is a number from 1 on":     {Action: Action{Kind: Hold}, Match: point(Match{Nth: Range{0, 3}})},
		"every= is a whole number":       {Action: Action{Kind: Hold}, Match: point(Match{Every: -1})},
		"probability= is a number above": {Action: Action{Kind: Hold}, Match: point(Match{Probability: -0.5})},
		"for= is a time above 0":         {Action: Action{Kind: Hold}, Match: point(Match{For: -1})},
		"has a character that no point":  {Action: Action{Kind: Hold}, Match: Match{Point: "hook/a b"}},
		"carry no name": {Action: Action{Kind: Hold},
			Match: Match{Point: "store/lease-grant", Namespace: "a", Name: "b"}},
	} {
		assert.ErrorContains(t, rule.Validate(nil), want)
	}
}

func TestPlan(t *testing.T) {
	text := "# a plan\n\nhold hook/start-*   # the informers\r\n  fail store/put times=1 with=no-leader\n"
	plan, err := ParsePlan("plan.txt", text, known)
	require.NoError(t, err)
	assert.Equal(t, "hold hook/start-*\nfail store/put times=1 with=no-leader\n", plan.String())
	assert.NoError(t, plan.Validate(known))

	_, err = ParsePlan("plan.txt", "hold store/put\nfall store/put\n\tfail store/pu with=unavailable nth=0\nhöld "+
		"store/put\n", known)
	assert.EqualError(t, err, `plan.txt:2:1: unknown action "fall"; did you mean fail?
plan.txt:3:33: nth= is a number from 1 on, or a range such as 2..5 or 2.., not "0"
plan.txt:4:1: unknown action "höld"; did you mean hold?`)
	var where *SyntaxError
	assert.ErrorAs(t, err, &where)

	bad := Plan{{Action: Action{Kind: Hold}, Match: Match{Point: "x/y"}},
		{Action: Action{Kind: "shake"}, Match: Match{Point: "store/put"}}}
	assert.ErrorContains(t, bad.Validate(nil), "x/y")
	assert.ErrorContains(t, bad.Validate(nil), "shake")
}

func TestReadPlan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan")
	_, err := ReadPlan(file, nil)
	assert.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte("hold store/put\n"), 0o600))
	plan, err := ReadPlan(file, nil)
	require.NoError(t, err)
	assert.Len(t, plan, 1)
}

// Whatever is read is printed as text that reads back as the same, and prints
// as itself.
func FuzzParsePlan(f *testing.F) {
	for _, k := range Points() {
		f.Add(k.Example)
	}
	f.Add("hold store/put caller=\"a \\\"b\\\"\\x00\\xff\" key=\"/# é\" # x\n\nfail http/get nth=2.. every=3 " +
		"probability=1e-7 after=1ns until=2562047h with=429 retry-after=1s optional")
	f.Fuzz(func(t *testing.T, text string) {
		plan, err := ParsePlan("plan", text, nil)
		if err != nil {
			require.Nil(t, plan, "a plan and an")
			require.NotEmpty(t, err.Error(), "a plan and an")
			return
		}
		require.NoError(t, plan.Validate(nil), "%q was read, and is not valid", text)
		printed := plan.String()
		require.True(t, utf8.ValidString(printed), "%q prints as %q, which is not text", text, printed)
		back, err := ParsePlan("printed", printed, nil)
		require.NoError(t, err, "%q prints as %q", text, printed)
		require.Empty(t, cmp.Diff(plan, back), "%q prints", text)
		require.Equal(t, printed, back.String(), "%q prints", text)
	})
}
