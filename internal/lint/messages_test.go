package lint

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"snowglobe.test/internal/pages"
)

// messagesPage explains messages, each by its text.
const messagesPage = "docs/troubleshooting.md"

// othersMessages are on the page, but are not made by a test that reads it: why.
var othersMessages = map[string]string{
	"no matches for kind \"Widget\" in version ...":                            "client-go's",
	"is forbidden: User \"jane\" cannot ...":                                   "the API server's",
	"Forbidden: ... error looking up service account default/default":          "the API server's",
	"deadlock: main bubble goroutine has exited but blocked goroutines remain": "Go's",
	"fatal error: concurrent map read and map write":                           "Go's",
	"flag redefined: kubeconfig":                                               "Go's",
	"go: updates to go.mod needed":                                             "the go command's",
	"timed out waiting for the condition":                                      "kubectl's",

	"control planes side by side share feature gates, ...": "envtest/process makes it, whose tests import nothing",
	"... their housekeeping":                               "as above",
	"virtual time stands still at ... things happened ... a client tries again and again without a pause": "envtest/soak makes it, in minutes",
}

// messages is the rule that each message of the page is made: a test that checks messages by
// pages.Troubleshooting has it among its strings, at least in parts. That each of those
// messages is on the page they check themselves.
func messages(others map[string]string) func(*tree) []string {
	return func(t *tree) []string {
		var complaints []string
		left := maps.Clone(others)
		said := t.checkedTexts()
		for _, f := range t.files {
			if f.path != messagesPage {
				continue
			}
			for _, entry := range pages.Messages(string(f.text)) {
				if left[entry] != "" {
					delete(left, entry)
				} else if !slices.ContainsFunc(said, func(texts []string) bool { return has(texts, entry) }) {
					complaints = append(complaints, complaint(f, 1, "no test that calls pages.Troubleshooting makes the message %q", entry))
				}
			}
		}
		for _, entry := range slices.Sorted(maps.Keys(left)) {
			complaints = append(complaints, messagesPage+": has no entry for "+entry+": remove it from othersMessages")
		}
		return complaints
	}
}

// tellingPart is how long a part of a message is at least that must be among the strings of a
// test; what is shorter, such as "is in", tells nothing.
const tellingPart = 12

// has reports whether each part of a message is in one of the texts.
func has(texts []string, entry string) bool {
	for part := range strings.SplitSeq(entry, "...") {
		if len(part) >= tellingPart && !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, strings.TrimSpace(part)) }) {
			return false
		}
	}
	return true
}

// checkedTexts are the strings in each test file that compares messages with the page.
func (t *tree) checkedTexts() (all [][]string) {
	for _, f := range t.files {
		if !f.isTest() || !strings.Contains(string(f.text), "pages.Troubleshooting(") {
			continue
		}
		parsed, _ := f.syntax()
		var texts []string
		ast.Inspect(parsed, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					texts = append(texts, text)
				}
			}
			return true
		})
		all = append(all, texts)
	}
	return all
}

func TestMessages(t *testing.T) { obeys(t, messages(othersMessages)(repository(t))) }

func TestMessagesComplains(t *testing.T) {
	const page = "**`the disk of ... is full`, or `no snow\nleft on device`** — Free some.\n\n**`it melts, said the API server`** — So it does.\n\n**In words** — `not a message at all`\n"
	try(t, messages(map[string]string{"it melts, said the API server": "theirs", "it never snows": "theirs"}), []fixture{{"messages", map[string]string{
		messagesPage:     page,
		"a/disk_test.go": "package a\n\nfunc f() {\n\tcheck(`start: the disk of \"data\" is full: go`)\n\tpages.Troubleshooting(nil, \"..\", \"\")\n}\n",
		"b/snow_test.go": "package b\n\nvar s = \"no snow left on device\"\n",
	}, []string{
		messagesPage + ":1: no test that calls pages.Troubleshooting makes the message \"no snow left on device\"",
		messagesPage + ": has no entry for it never snows",
	}}})
}
