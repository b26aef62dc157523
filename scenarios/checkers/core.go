package checkers

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"snowglobe.test/internal/shrink"
)

// maxCore is how many claims a finding shows.
const maxCore = 12

// core returns few of the claims, that have no order either. In an open history any
// of them can be left out, for what they have changed may be an unknown client's doing.
// Otherwise changes can't, and of those only the closest to the rest are returned.
func (s *search) core(m *model, claims []*claim) []*claim {
	free := *m
	if m.regime != open {
		free.regime = open
		if s.order(&free, claims) != Broken {
			return s.reads(m, claims)
		}
	}
	return s.least(claims, func(some []*claim) bool { return s.order(&free, some) == Broken })
}

// reads returns few of the claims, and those of the changes that are closest to them.
func (s *search) reads(m *model, claims []*claim) []*claim {
	var changes, rest []*claim
	for _, c := range claims {
		if c.changes() {
			changes = append(changes, c)
		} else {
			rest = append(rest, c)
		}
	}
	least := s.least(rest, func(some []*claim) bool {
		return s.order(m, slices.Concat(changes, some)) == Broken
	})
	if len(least) == 0 { // the changes have no order by themselves
		first := s.shortest(changes, func(some []*claim) bool { return s.order(m, some) == Broken })
		return first[max(0, len(first)-maxCore):]
	}
	from, to := least[0].call, int64(0)
	for _, c := range least {
		from, to = min(from, c.call), max(to, min(c.ret, math.MaxInt64-1))
	}
	slices.SortStableFunc(changes, func(a, b *claim) int { return cmp.Compare(a.call, b.call) })
	var near []*claim
	for i, c := range changes { // those under way meanwhile, and the one before
		meanwhile := c.call <= to && c.ret >= from
		before := c.ret < from && (i+1 == len(changes) || changes[i+1].ret >= from)
		if meanwhile || before {
			near = append(near, c)
		}
	}
	near = near[max(0, len(near)-maxCore+min(len(least), maxCore)):]
	return append(near, least[:min(len(least), maxCore)]...)
}

// shortest returns the shortest beginning of the claims, in the order in which they
// ended, that is still broken.
func (s *search) shortest(claims []*claim, broken func([]*claim) bool) []*claim {
	claims = slices.Clone(claims)
	slices.SortStableFunc(claims, func(a, b *claim) int { return cmp.Compare(a.ret, b.ret) })
	return claims[:sort.Search(len(claims), func(n int) bool { return broken(claims[:n]) })]
}

// least takes claims away as long as the rest is still broken.
func (s *search) least(claims []*claim, broken func([]*claim) bool) []*claim {
	claims = s.shortest(claims, broken)
	const maxTries = 400
	tries := 0
	_ = shrink.Remove(len(claims), func(parts []shrink.Part) (int, error) {
		return slices.IndexFunc(parts, func(p shrink.Part) bool {
			if tries++; tries > maxTries || s.ctx.Err() != nil {
				return false
			}
			without := slices.Delete(slices.Clone(claims), p.From, p.To)
			if broken(without) {
				claims = without
				return true
			}
			return false
		}), nil
	})
	return claims[:min(len(claims), maxCore)]
}
