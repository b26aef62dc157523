package process

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A value is made once, and the one that was asked for longest ago is forgotten.
func TestMemo(t *testing.T) {
	made := map[string]int{}
	ask := func(key string) string {
		return Memo("TestMemo "+key, func() string {
			made[key]++
			return key
		})
	}
	for range 2 {
		assert.Equal(t, "a", ask("a"))
	}
	for i := range memoLimit - 1 {
		ask(fmt.Sprint(i))
	}
	ask("a")
	assert.Equal(t, 1, made["a"], "the last that was asked for stays")
	ask("one more")
	ask("a")
	assert.Equal(t, 1, made["a"])
	ask("0")
	assert.Equal(t, 2, made["0"], "forgotten")
}
