package fault

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	didYouMean = regexp.MustCompile(`; did you mean (.*)\?$`)
	suchAs     = regexp.MustCompile(`such as (.*?)(?:, not |: |$)`)
	thereIs    = regexp.MustCompile(`; there (?:is|are) ([^0-9].*)$`)
	between    = regexp.MustCompile(`, | or `)
	keyOf      = regexp.MustCompile(`^([a-z-]+=)`)
)

// TestSuggestionsAreAccepted mistypes each word of many rules, does what the error
// suggests, and finds that nothing is wrong with the word any more.
func TestSuggestionsAreAccepted(t *testing.T) {
	suggested := 0
	for _, rule := range mistypable() {
		words := strings.Fields(rule)
		for i, word := range words {
			for _, wrong := range nearMisses(word) {
				column := 1 + len(strings.Join(words[:i], " ")) + min(i, 1)
				with := func(word string) string {
					return strings.Join(append(append(append([]string{}, words[:i]...), word), words[i+1:]...), " ")
				}
				for _, suggestion := range suggestions(mistakeAt(with(wrong), column), wrong) {
					suggested++
					assert.Empty(t, mistakeAt(with(suggestion), column), "%q, for which %q is suggested", with(wrong), suggestion)
				}
			}
		}
	}
	require.Greater(t, suggested, 500, "the test reads no suggestions")
}

// TestRetryAfter suggests a number of seconds, and not another time.
func TestRetryAfter(t *testing.T) {
	const rule = "fail http/get with=503 retry-after="
	for _, wrong := range []string{"1", "250ms", "0s", "-1s", "soon"} {
		_, err := Parse(rule+wrong, known)
		require.EqualError(t, err, fmt.Sprintf("column 24: retry-after= is a number of whole seconds, such as 2s, not %q", wrong))
	}
	_, err := Parse(rule+"2s", known)
	require.NoError(t, err)
}

// mistypable are rules with each action, point and key.
func mistypable() []string {
	rules := []string{
		"fail http/get with=503 retry-after=2s", "delay store/put by=3s after=2s for=5s", "hold store/put until=9s nth=2 times=3",
		"hold store/put every=3 probability=0.5 key=/registry/pods", "hold http/get phase=after resource=configmaps name=a",
		"hold informer/pods verb=list", "freeze cache/pods at=12", "partition store server=alpha", "lose-reply http/update with=reset",
	}
	for _, kind := range Points() {
		if _, err := Parse(kind.Example, known); err == nil { // the others name other servers
			rules = append(rules, kind.Example)
		}
	}
	return rules
}

// nearMisses are what a person may write in the place of a word, and numbers without a unit.
func nearMisses(word string) []string {
	key := keyOf.FindString(word)
	value := strings.TrimPrefix(word, key)
	var wrong []string
	for _, v := range []string{value[:len(value)-1], value + "x", value[:1] + value, "1", "0", "-1", "2.5s", "250ms"} {
		if v != "" && v != value {
			wrong = append(wrong, key+v)
		}
	}
	if key != "" {
		wrong = append(wrong, key[1:]+value, key[:1]+word)
	}
	return wrong
}

// missed is what is wrong with a word that is right by itself.
var missed = regexp.MustCompile(`needs (by|with)=|means nothing at|choose among operations|have no verb of|is there twice|has no value`)

// mistakeAt is what is wrong with the word at a column of a rule.
func mistakeAt(rule string, column int) string {
	_, err := Parse(rule, known)
	var found []string
	for _, err := range mistakesOf(err) {
		var mistake *SyntaxError
		if errors.As(err, &mistake) && mistake.Column == column && !missed.MatchString(mistake.Reason) {
			found = append(found, mistake.Reason)
		}
	}
	return strings.Join(found, "\n")
}

func mistakesOf(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// suggestions are the words that a mistake suggests in the place of a wrong one.
func suggestions(mistake, wrong string) []string {
	var words []string
	for reason := range strings.Lines(mistake) {
		for _, pattern := range []*regexp.Regexp{didYouMean, suchAs, thereIs} {
			m := pattern.FindStringSubmatch(strings.TrimSpace(reason))
			if m == nil {
				continue
			}
			for _, name := range between.Split(m[1], -1) {
				words = append(words, inPlaceOf(strings.TrimSpace(reason), wrong, name))
			}
			break
		}
	}
	return words
}

// inPlaceOf puts what is suggested in the place of a wrong word: a key stays before a value.
func inPlaceOf(reason, wrong, name string) string {
	key, value, hasKey := strings.Cut(wrong, "=")
	switch {
	case !hasKey, strings.HasPrefix(name, key+"="):
		return name
	case strings.HasPrefix(reason, "unknown key"):
		return name + "=" + value
	}
	return key + "=" + name
}
