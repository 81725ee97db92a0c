package cri

import (
	"runtime"
	"runtime/debug"
	"time"
)

// Messages from this size on are rare, and worth giving their memory back: after them the agent rests, and a
// Go program at rest collects nothing.
const large = 1 << 20

const giveBackAfter = time.Second

// ballast gives the memory of large messages back to the node when no further one has come for a second.
type ballast struct{ timer *time.Timer }

func newBallast() ballast {
	timer := time.AfterFunc(giveBackAfter, giveBack)
	timer.Stop()
	return ballast{timer}
}

// giveBack collects twice: gRPC keeps its buffers in a sync.Pool, and what such a pool holds outlives one
// collection.
func giveBack() {
	runtime.GC()
	debug.FreeOSMemory()
}

// saw notes a message that has been passed on.
func (b ballast) saw(size int) {
	if size >= large {
		b.timer.Reset(giveBackAfter)
	}
}
