package keyspace

import (
	"cmp"
	"time"

	"github.com/google/btree"
)

// MaxLeaseTTL is the longest time-to-live etcd grants, in seconds.
const MaxLeaseTTL = 9_000_000_000

// lease is a granted lease. It is replaced, not changed, when it is renewed.
type lease struct {
	id     int64
	ttl    int64 // seconds
	expiry time.Time
}

// attachment says that key belongs to a lease.
type attachment struct {
	lease int64
	key   string
}

// lessor is the leases, their keys and a timer, guarded by the store's lock.
type lessor struct {
	byID     *btree.BTreeG[*lease]
	byExpiry *btree.BTreeG[*lease]
	attached *btree.BTreeG[attachment]

	lastID int64
	timer  *time.Timer
	alarm  time.Time // when timer fires
	armed  int       // number of the current timer, to recognize an old one
}

func newLessor() lessor {
	return lessor{
		byID: btree.NewG(btreeDegree, func(a, b *lease) bool { return a.id < b.id }),
		byExpiry: btree.NewG(btreeDegree, func(a, b *lease) bool {
			return cmp.Or(a.expiry.Compare(b.expiry), cmp.Compare(a.id, b.id)) < 0
		}),
		attached: btree.NewG(btreeDegree, func(a, b attachment) bool {
			return cmp.Or(cmp.Compare(a.lease, b.lease), cmp.Compare(a.key, b.key)) < 0
		}),
		// Large ids look like etcd's, and do not collide with those that a test makes up.
		lastID: int64(MemberID >> 2),
	}
}

// clone copies l, but for the timer, in constant time. No other goroutine may use l meanwhile.
func (l *lessor) clone() lessor {
	return lessor{
		byID: l.byID.Clone(), byExpiry: l.byExpiry.Clone(), attached: l.attached.Clone(), lastID: l.lastID,
	}
}

func (l *lessor) lookup(id int64) *lease {
	found, _ := l.byID.Get(&lease{id: id})
	return found
}

// newID returns an id no lease has.
func (l *lessor) newID() int64 {
	for {
		l.lastID++
		if l.lookup(l.lastID) == nil {
			return l.lastID
		}
	}
}

// move takes key from one lease to another; 0 is none.
func (l *lessor) move(key string, from, to int64) {
	if from != 0 {
		l.attached.Delete(attachment{from, key})
	}
	if to != 0 {
		l.attached.ReplaceOrInsert(attachment{to, key})
	}
}

// keys returns the keys of a lease in their order.
func (l *lessor) keys(id int64) []string {
	var keys []string
	l.attached.AscendGreaterOrEqual(attachment{lease: id}, func(a attachment) bool {
		if a.lease != id {
			return false
		}
		keys = append(keys, a.key)
		return true
	})
	return keys
}

// set adds or renews a lease.
func (l *lessor) set(le *lease) {
	if old, ok := l.byID.ReplaceOrInsert(le); ok {
		l.byExpiry.Delete(old)
	}
	l.byExpiry.ReplaceOrInsert(le)
}

// remove forgets a lease.
func (l *lessor) remove(le *lease) {
	l.byID.Delete(le)
	l.byExpiry.Delete(le)
}

// arm sets the timer to the nearest expiry.
func (l *lessor) arm(s *Store) {
	next, ok := l.byExpiry.Min()
	if ok && l.timer != nil && l.alarm.Equal(next.expiry) {
		return
	}
	l.stop(s)
	if ok && !s.closed {
		l.alarm = next.expiry
		l.armed++
		nth := l.armed
		l.timer = s.After(time.Until(next.expiry), func() { s.expire(nth) })
	}
}

// stop ends the timer.
func (l *lessor) stop(s *Store) {
	s.CancelTimer(l.timer)
	l.timer = nil
}

// expire, called by the nth timer, revokes each expired lease at its own revision.
func (s *Store) expire(nth int) {
	s.mu.Lock()
	if s.leases.armed == nth {
		s.leases.timer = nil
	}
	s.mu.Unlock()
	for {
		t, err := s.begin(0)
		if err != nil {
			return // closed, or under an alarm that also stops this in etcd
		}
		next, ok := s.leases.byExpiry.Min()
		if !ok || next.expiry.After(time.Now()) {
			s.leases.arm(s)
			t.end()
			return
		}
		t.revoke(next)
		t.end()
	}
}

// revoke removes a lease with its keys.
func (t *writeTxn) revoke(le *lease) {
	for _, key := range t.s.leases.keys(le.id) {
		t.delete(key, t.s.keys.record(key))
	}
	t.s.leases.remove(le)
}
