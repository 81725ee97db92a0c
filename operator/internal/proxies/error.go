package proxies

import "fmt"

// Error is what kept a proxy from answering as asked.
type Error struct {
	// Status is that of the answer; 0: there was none.
	Status int
	Text   string
}

func (e *Error) Error() string {
	if e.Status == 0 {
		return e.Text
	}
	return fmt.Sprintf("%d: %s", e.Status, e.Text)
}
