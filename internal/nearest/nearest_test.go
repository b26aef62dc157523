package nearest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNames(t *testing.T) {
	verbs := []string{"list", "watch", "sync", "resync", "start", "list"}
	names := []string{"configmaps", "controllerrevisions", "crd-informer-synced", "pods", "podtemplates", "start-apiextensions-informers"}
	for _, test := range []struct {
		known []string
		name  string
		want  []string
	}{
		{names, "configmap", []string{"configmaps"}},
		{names, "cofnigmaps", []string{"configmaps"}},
		{names, "crd-informers-sync", []string{"crd-informer-synced"}},
		{names, "crd-informer", []string{"crd-informer-synced"}},
		{names, "pod", []string{"pods"}},
		{names, "POD", []string{"pods"}},
		{names, "nothing-of-the-kind", nil},
		{names, "", nil},
		{verbs, "lits", []string{"list"}},
		{verbs, "synk", []string{"sync"}},
		{verbs, "rsync", []string{"resync", "sync"}},
		{verbs, "stat", []string{"start"}},
		{verbs, "", nil},
		{[]string{"ab", "ac", "ad", "ae"}, "a", []string{"ab", "ac", "ad"}},
	} {
		assert.Equal(t, append([]string{}, test.want...), append([]string{}, Names(test.name, test.known)...), test.name)
	}
}

func TestDidYouMean(t *testing.T) {
	assert.Empty(t, DidYouMean("qqqqq", []string{"list"}))
	assert.Equal(t, "; did you mean list?", DidYouMean("lisd", []string{"list", "watch"}))
	assert.Equal(t, "; did you mean resync or sync?", DidYouMean("rsync", []string{"sync", "resync"}))
}

func TestEither(t *testing.T) {
	assert.Equal(t, "", Either([]string{}))
	assert.Equal(t, "a", Either([]string{"a"}))
	assert.Equal(t, "a or b", Either([]string{"a", "b"}))
	assert.Equal(t, "a, b or c", Either([]string{"a", "b", "c"}))
}
