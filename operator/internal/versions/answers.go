package versions

import (
	"context"
	"time"
)

// remembered is how long an answer is good for: for the turns of all objects with the same question.
const remembered = time.Minute

// reply is an answer that is under way until done is closed.
type reply struct {
	done    chan struct{}
	asked   time.Time
	entry   Entry
	refused *Problem
}

// answer is what the service has answered to a question, which is asked if it has not been; false: not yet.
func (c *Client) answer(ctx context.Context, question Question, now time.Time) (Entry, *Problem, bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for old, r := range c.replies {
		if r.isDone() && now.Sub(r.asked).Abs() > remembered {
			delete(c.replies, old)
		}
	}
	r := c.replies[question]
	if r == nil {
		r = &reply{done: make(chan struct{}), asked: now}
		c.replies[question] = r
		go func() {
			defer close(r.done)
			// A turn ends before its answer comes.
			r.entry, r.refused = c.Ask(context.WithoutCancel(ctx), question)
		}()
	}
	if !r.isDone() {
		return Entry{}, nil, false
	}
	return r.entry, r.refused, true
}

func (r *reply) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
