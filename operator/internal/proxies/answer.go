// Package proxies asks the proxies' admin ports and gives them orders.
package proxies

// Answer is what a proxy answers to an order and to the question for it.
type Answer struct {
	// Process is another one with every start of the proxy.
	Process string `json:"process"`
	Pool    string `json:"pool"`
	// Writer is the pod that takes writes now; empty: none.
	Writer string `json:"writer"`
	// Preferred is who would take them by the proxy's own settings alone; empty: they name nobody.
	Preferred string `json:"preferred"`
	// Quiet: nothing is under way at the writer, and new writes wait.
	Quiet bool `json:"quiet"`
	// HeldMS is for how long writes wait because of a hold; nil: no hold is in force.
	HeldMS        *int64   `json:"held_ms"`
	LongestHoldMS *int64   `json:"longest_hold_ms"`
	Waiting       int64    `json:"waiting"`
	Order         *Order   `json:"order"`
	Orders        []string `json:"orders"`
	ByHand        []ByHand `json:"by_hand"`
	Members       []Member `json:"members"`
}

// Wish is the whole of what an order asks for. The zero value asks for nothing.
type Wish struct {
	Hold   bool     `json:"hold,omitempty"`
	Drain  []string `json:"drain,omitempty"`
	Writer string   `json:"writer,omitempty"`
}

// Order is an order in force.
type Order struct {
	Name string `json:"name"`
	Wish
	EndsInMS int64 `json:"ends_in_ms"`
	// HoldEnded is why the hold has ended before the order; empty: it has not.
	HoldEnded string `json:"hold_ended"`
}

// ByHand is what a person has ordered, which is in force until that person ends it.
type ByHand struct {
	Order  string `json:"order"`
	Member string `json:"member"`
}

// Roles of a member.
const (
	Writer = "writer"
	Reader = "reader"
	Out    = "out"
)

// Passed is a barrier's state when the member has everything that was written before.
const Passed = "passed"

// Member is a member of the pool, as one proxy sees it.
type Member struct {
	Name      string `json:"name"`
	Pod       string `json:"pod"`
	UID       string `json:"uid"`
	Address   string `json:"address"`
	Version   string `json:"version"`
	Role      string `json:"role"`
	RoleMS    int64  `json:"role_ms"`
	Online    bool   `json:"online"`
	Drains    bool   `json:"drains"`
	Why       string `json:"why"`
	Sessions  int    `json:"sessions"`
	Barrier   string `json:"barrier"`
	BarrierMS *int64 `json:"barrier_ms"`
}

// Member returns the member that is this pod, by its uid.
func (a *Answer) Member(uid string) *Member {
	for index := range a.Members {
		if a.Members[index].UID == uid && uid != "" {
			return &a.Members[index]
		}
	}
	return nil
}
