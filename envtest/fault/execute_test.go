package fault

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDeliver(t *testing.T) {
	event := func() Operation { return Operation{Point: "store/watch-event", Verb: "put", Resource: "configmaps"} }
	for rule, want := range map[string]Delivery{
		"drop store/watch-event":                           {},
		"duplicate store/watch-event":                      {Times: 2},
		"cancel store/watch-event":                         {Last: true},
		"crash store/watch-event":                          {Last: true, Err: ErrCrashed},
		"compact store/watch-event":                        {Times: 1},
		"drop store/watch-event resource=pods optional":    {Times: 1},
		"drop store/watch-event server=b optional":         {Times: 1},
		"duplicate store/watch-event resource=configmaps":  {Times: 2},
		"cancel store/watch-event nth=2 optional":          {Times: 1},
		"drop store/put optional":                          {Times: 1},
		"duplicate store/watch-event verb=delete optional": {Times: 1},
	} {
		t.Run(rule, func(t *testing.T) {
			i, _ := injectorOf(t, rule)
			assert.Equal(t, want, Deliver(t.Context(), i, event))
		})
	}
}
