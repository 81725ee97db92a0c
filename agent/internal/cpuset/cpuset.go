// Package cpuset holds sets of small integers (CPU ids, memory node ids) with value semantics.
//
// A Set never changes after it was made: every operation returns a new one, so that sets can be shared
// between a state and its successor, and compared with Equal. Ids may be any number the kernel uses; there is
// no limit of 1024.
package cpuset

import "math/bits"

// Set is a set of non-negative integers. The zero value is the empty set.
type Set struct {
	// words holds 64 ids each. The last word is never zero, so that equal sets have equal words.
	words []uint64
}

// Of returns the set of the given ids; negative ones are left out.
func Of(ids ...int) Set {
	highest := -1
	for _, id := range ids {
		highest = max(highest, id)
	}
	if highest < 0 {
		return Set{}
	}
	words := make([]uint64, highest/64+1)
	for _, id := range ids {
		if id >= 0 {
			words[id/64] |= 1 << (id % 64)
		}
	}
	return Set{words}
}

// Range returns the set of all ids from first to last, both included.
func Range(first, last int) Set {
	if first < 0 || last < first {
		return Set{}
	}
	words := make([]uint64, last/64+1)
	for id := first; id <= last; id++ {
		words[id/64] |= 1 << (id % 64)
	}
	return Set{words}
}

// Len returns the number of ids in the set.
func (s Set) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// Empty tells whether the set has no id.
func (s Set) Empty() bool { return len(s.words) == 0 }

// Has tells whether id is in the set.
func (s Set) Has(id int) bool {
	return id >= 0 && id/64 < len(s.words) && s.words[id/64]&(1<<(id%64)) != 0
}

// First returns the lowest id, or -1 of an empty set.
func (s Set) First() int {
	for i, w := range s.words {
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// IDs returns the ids in ascending order.
func (s Set) IDs() []int {
	ids := make([]int, 0, s.Len())
	for i, w := range s.words {
		for ; w != 0; w &= w - 1 {
			ids = append(ids, i*64+bits.TrailingZeros64(w))
		}
	}
	return ids
}

// Equal tells whether both sets have the same ids.
func (s Set) Equal(o Set) bool {
	if len(s.words) != len(o.words) {
		return false
	}
	for i := range s.words {
		if s.words[i] != o.words[i] {
			return false
		}
	}
	return true
}

// Union returns the ids of either set.
func (s Set) Union(o Set) Set {
	if len(s.words) < len(o.words) {
		s, o = o, s
	}
	if o.Empty() {
		return s
	}
	words := append([]uint64(nil), s.words...)
	for i, w := range o.words {
		words[i] |= w
	}
	return Set{words}
}

// Intersect returns the ids of both sets.
func (s Set) Intersect(o Set) Set {
	words := make([]uint64, min(len(s.words), len(o.words)))
	for i := range words {
		words[i] = s.words[i] & o.words[i]
	}
	return trimmed(words)
}

// Minus returns the ids of s that are not in o.
func (s Set) Minus(o Set) Set {
	if s.Empty() || o.Empty() {
		return s
	}
	words := append([]uint64(nil), s.words...)
	for i := range min(len(words), len(o.words)) {
		words[i] &^= o.words[i]
	}
	return trimmed(words)
}

// Within tells whether every id of s is in o.
func (s Set) Within(o Set) bool {
	if len(s.words) > len(o.words) {
		return false
	}
	for i, w := range s.words {
		if w&^o.words[i] != 0 {
			return false
		}
	}
	return true
}

// Meets tells whether the two sets have an id in common.
func (s Set) Meets(o Set) bool {
	for i := range min(len(s.words), len(o.words)) {
		if s.words[i]&o.words[i] != 0 {
			return true
		}
	}
	return false
}

func trimmed(words []uint64) Set {
	for len(words) > 0 && words[len(words)-1] == 0 {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return Set{}
	}
	return Set{words}
}
