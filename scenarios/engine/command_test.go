package engine

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBounds(t *testing.T) {
	for synopsis, want := range map[string][2]int{
		"":                         {0, 0},
		"[--all]":                  {0, 0},
		"HOST ANSWERS":             {2, 2},
		"NAME TYPE [OBJECT|LINE]":  {2, 3},
		"CLIENT | SERVER":          {1, 1},
		"[-n NAMESPACE] RESOURCE":  {1, 1},
		"[-n NAMESPACE | -A] NAME": {1, 1},
		"[--resource-version RV [--match Exact|NotOlderThan]] NAME": {1, 1},
		"[NAMESPACE/]SERVICEACCOUNT":                                {1, 1},
		"[-H HEADER]... METHOD PATH [FILE]":                         {2, 3},
		"FILE...":                                                   {1, math.MaxInt},
		"[--servers N] [-- FLAG...]":                                {0, math.MaxInt},
		"[SERVER] | POINT [KEY=VALUE]...":                           {0, math.MaxInt},
		"[POINT [KEY=VALUE]... [optional]]":                         {0, math.MaxInt},
		"--for DURATION [!] COMMAND [ARGUMENT]...":                  {1, math.MaxInt},
		"user NAME [GROUP...] | token TOKEN":                        {2, math.MaxInt},
	} {
		least, most := Command{Args: synopsis}.bounds()
		assert.Equal(t, want, [2]int{least, most}, synopsis)
	}
	least, most := Command{Args: "PATTERN FILE", Verbatim: true}.bounds()
	assert.Equal(t, [2]int{0, math.MaxInt}, [2]int{least, most}, "arguments of another program")
}
