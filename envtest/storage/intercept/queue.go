package intercept

// queue is first in, first out. The zero value is empty.
type queue[T any] struct {
	items []T
	head  int // of those in items, how many are gone
}

func (q *queue[T]) add(item T) { q.items = append(q.items, item) }

// first returns the oldest.
func (q *queue[T]) first() (item T, ok bool) {
	if q.head == len(q.items) {
		return item, false
	}
	return q.items[q.head], true
}

// drop takes the oldest out; its room is used again when the queue is empty.
func (q *queue[T]) drop() {
	q.items[q.head] = *new(T)
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
}
