package engine

// Refuse notes that a new configuration was refused and the old one stays, until there is a good one.
func (e *Engine) Refuse(because error) {
	e.guard("refuse", nil, func() {
		e.badConfig = []string{"the configuration was refused, the old one stays: " + because.Error()}
		e.counters.Refused++
	})
}
