package fault

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInject adds a rule that is text, and takes it out again.
func TestInject(t *testing.T) {
	s := New(Config{Names: Names{"resource": {"configmaps"}}})
	entry, err := s.Inject("fail store/put resource=configmaps with=unavailable")
	require.NoError(t, err)
	put := Operation{Point: "store/put", Resource: "configmaps"}
	d, err := s.At(t.Context(), func() Operation { return put })
	require.NoError(t, err)
	assert.Equal(t, Fail, d.Kind)
	entry.Remove()
	assert.False(t, s.Active())

	for rule, want := range map[string]string{
		"fall store/put with=unavailable":                        "did you mean fail?",
		"fail store/put resource=configmap with=unavailable":     "did you mean configmaps?",
		"fail store/put with=unavailable\nhold hook/* verb=post": "a rule is one line",
	} {
		_, err := s.Inject(rule)
		assert.ErrorContains(t, err, want)
	}
	s.Close()
	_, err = s.Inject("hold store/put")
	assert.ErrorIs(t, err, ErrClosed)
}
