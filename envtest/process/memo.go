package process

import "k8s.io/utils/lru"

// memoLimit bounds what is kept: a process has few configurations, each of some megabytes.
const memoLimit = 6

// memo keeps values that a server has made and later servers use too.
var memo = lru.New(memoLimit)

// Memo returns what made has returned for the key before, to any server of the process, or
// what it returns now. The key says all that the value depends on, and nothing in the value
// belongs to a server. Servers that start at the same time may each make one.
func Memo[T any](key string, made func() T) T {
	if value, ok := memo.Get(key); ok {
		return value.(T)
	}
	value := made()
	memo.Add(key, value)
	return value
}
