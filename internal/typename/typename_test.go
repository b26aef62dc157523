package typename

import (
	"io"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFind(t *testing.T) {
	assert.Contains(t, Find("io.PipeReader"), reflect.TypeFor[io.PipeReader]())
	assert.Empty(t, Find("io.NoSuchType"))
}
