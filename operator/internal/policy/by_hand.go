package policy

import "fmt"

// byHand: what a person has ordered by hand is waited for, and never undone.
func byHand(v *view) *Decision {
	for _, proxy := range v.asked {
		for _, order := range proxy.Answer.ByHand {
			return v.keep(&Decision{
				Step: Waiting, Reason: "OrderedByHand", Again: whenBlocked,
				Message: fmt.Sprintf("a person has ordered %s %s at proxy %s, which is in force until that person ends it "+
					"by proxima mysql", order.Order, order.Member, proxy.Pod),
			})
		}
	}
	return nil
}
