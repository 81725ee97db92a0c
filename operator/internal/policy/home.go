package policy

// home: when all pods are new, the writer returns to who wrote before the roll, and the orders end. Without
// an order the proxies follow their own rule already.
func home(v *view) *Decision {
	if !v.orders() {
		return nil
	}
	ending := &Decision{
		Step: EndingOrders, Reason: "Ends", Message: "all pods are updated; the orders end", Again: whileHeld,
	}
	if v.Status.Roll == nil || v.Status.Roll.Writer == "" || v.Status.Roll.Writer == v.writer {
		return ending
	}
	pod, found := v.pod(v.Status.Roll.Writer)
	if !found || v.asItIs().Writer == "" {
		return ending
	}
	return v.move(pod, ReturningWriter)
}

// rest: nothing is to be done.
func (v *view) rest() *Decision {
	return &Decision{
		Step: Resting, Reason: "UpToDate", Message: "all pods have the template's revision and serve", Again: atRest,
	}
}
