package report

import "strings"

// shortNames are the names of a group's lanes without what their readers know: the
// "system:" of a user, and the group and version of a path. A short name is empty if the
// lane's own name is to be shown: it is as short, or others would have the same short name.
func shortNames(names []string) []string {
	short, uses := make([]string, len(names)), map[string]int{}
	for i, name := range names {
		short[i] = shortName(name)
		uses[short[i]]++
	}
	for i, name := range names {
		if short[i] == name || uses[short[i]] > 1 {
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
