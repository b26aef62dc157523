package report

import "strings"

// shortNames are the names of a group's lanes without what their readers know: the
// "system:" of a user, and the group and version of a path. Names that would read alike
// stay whole. An empty one is that of the lane.
func shortNames(names []string) []string {
	short, users := make([]string, len(names)), map[string]int{}
	for i, name := range names {
		short[i] = shortName(name)
		users[short[i]]++
	}
	for i, name := range names {
		if short[i] == name || users[short[i]] > 1 {
			short[i] = ""
		}
	}
	return short
}

func shortName(name string) string {
	words := strings.Split(name, " ")
	for i, word := range words {
		words[i] = shortWord(word)
	}
	return strings.Join(words, " ")
}

func shortWord(word string) string {
	if strings.HasPrefix(word, "/") {
		return shortURI(word)
	}
	word = strings.TrimPrefix(word, "system:")
	return strings.TrimPrefix(strings.TrimPrefix(word, "serviceaccount:"), "kube-system:")
}
