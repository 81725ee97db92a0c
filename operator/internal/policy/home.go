package policy

// home: when all pods are new, the writer returns to the choice of the proxies' own rule, and the orders end.
func home(v *view) *Decision {
	if !v.orders() {
		return nil
	}
	ending := &Decision{
		Step: EndingOrders, Reason: "Ends", Message: "all pods are updated; the orders end", Again: whileHeld,
	}
	pod, found := v.pod(v.rulesChoice())
	if !found || pod.Name == v.writer || v.asItIs().Writer == "" {
		return ending
	}
	return v.move(pod, ReturningWriter)
}

// rest: nothing is to be done.
func (v *view) rest() *Decision {
	return &Decision{
		Step: Resting, Reason: "UpToDate", Again: atRest,
		Message: "all pods have the template's revision and serve",
	}
}
