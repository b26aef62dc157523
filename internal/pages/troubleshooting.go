package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	entryHeading = regexp.MustCompile(`(?ms)^\*\*(.+?)\*\* —`)
	codeSpan     = regexp.MustCompile("(?s)`([^`]+)`")
)

// leastText is how many characters an entry must spell out, so that none matches everything.
const leastText = 12

// Troubleshooting fails the test unless docs/troubleshooting.md has an entry for the
// message: one whose bold text quotes it, or part of it, with "..." for what varies.
// root is the folder of the repository.
func Troubleshooting(t testing.TB, root, message string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := troubleshooting(string(text), message); err != nil {
		t.Error(err)
	}
}

func troubleshooting(page, message string) error {
	for _, entry := range Messages(page) {
		if Quotes(entry, message) {
			return nil
		}
	}
	return fmt.Errorf("docs/troubleshooting.md has no entry for the message %q", message)
}

// Messages are the messages that a page of entries explains, as it quotes them.
func Messages(page string) (quoted []string) {
	for _, heading := range entryHeading.FindAllStringSubmatch(page, -1) {
		for _, span := range codeSpan.FindAllStringSubmatch(heading[1], -1) {
			quoted = append(quoted, strings.Join(strings.Fields(span[1]), " "))
		}
	}
	return quoted
}

// Quotes reports whether a message of the page is part of a text; "..." in it stands for
// anything.
func Quotes(quoted, message string) bool {
	message = strings.Join(strings.Fields(message), " ")
	length := 0
	for part := range strings.SplitSeq(quoted, "...") {
		part = strings.TrimSpace(part)
		length += len(part)
		_, after, found := strings.Cut(message, part)
		if !found {
			return false
		}
		message = after
	}
	return length >= leastText
}
