package cri

import (
	"runtime/debug"
	"sync/atomic"
	"time"
)

// Messages from this size on are rare, and worth giving their memory back at once: after them the agent rests, and a Go
// program at rest collects nothing.
const large = 1 << 20

const giveBackAfter = time.Second

// ballast gives the memory of large messages back to the node, once for all that come within a second.
type ballast struct{ waiting atomic.Bool }

func (b *ballast) saw(size int) {
	if size < large || !b.waiting.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(giveBackAfter, func() {
		b.waiting.Store(false)
		debug.FreeOSMemory()
	})
}
