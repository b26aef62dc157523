// Package pages reads the documentation for tests: its fenced blocks, for those that compile,
// parse or run them, and the messages that troubleshooting.md explains.
package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Block is a fenced block of a page.
type Block struct {
	File     string
	Language string // as in "sh"; empty if the fence names none
	Text     []byte
}

// patterns are the pages of the repository that people write. docs/reference is generated.
var patterns = []string{"README.md", "CONTRIBUTING.md", "docs/*.md", "docs/guides/*.md"}

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// Blocks returns the blocks of all pages. root is the folder of the repository.
func Blocks(root string) ([]Block, error) {
	var blocks []Block
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("no page is %s", filepath.Join(root, pattern))
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			for _, m := range fence.FindAllSubmatch(text, -1) {
				blocks = append(blocks, Block{file, string(m[1]), m[2]})
			}
		}
	}
	return blocks, nil
}
