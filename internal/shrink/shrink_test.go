package shrink

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRemove(t *testing.T) {
	for _, needed := range []string{"", "a", "z", "mn", "aqz", "abcxyz"} {
		left := "abcdefghijklmnopqrstuvwxyz"
		err := Remove(len(left), func(parts []Part) (int, error) {
			return slices.IndexFunc(parts, func(p Part) bool {
				without := left[:p.From] + left[p.To:]
				missing := strings.ContainsFunc(needed, func(r rune) bool { return !strings.ContainsRune(without, r) })
				if !missing {
					left = without
				}
				return !missing
			}), nil
		})
		assert.NoError(t, err)
		assert.Equal(t, needed, left)
	}
	tired := errors.New("tired")
	assert.ErrorIs(t, Remove(3, func([]Part) (int, error) { return 0, tired }), tired, "the")
}
