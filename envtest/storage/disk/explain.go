package disk

import (
	"fmt"

	"snowglobe.test/internal/diskerr"
)

// explain is an error of something that was written in or below a data folder.
func explain(folder string, err error) error {
	if explained, ok := diskerr.Explain(folder, err); ok {
		return explained
	}
	return fmt.Errorf("data folder %q: %w", folder, err)
}
