package main

import (
	"fmt"
	"os"
	"path/filepath"

	"snowglobe.test/conformance/mutants/trial"
)

// verdictsFile is where verdicts are kept, in the folder of the module.
const verdictsFile = "verdicts.json"

func readKept(root string) (*trial.Kept, error) {
	text, err := os.ReadFile(filepath.Join(root, verdictsFile))
	if err != nil {
		return nil, fmt.Errorf("read the verdicts that are kept: %w", err)
	}
	return trial.ReadKept(text)
}

// save keeps the verdicts, and writes the page about them.
func save(root string, kept *trial.Kept) error {
	text, err := kept.Text()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, verdictsFile), text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(pagePath(root), []byte(page(kept)), 0o644)
}
