package v1alpha1

import "time"

// Duration is a text as 90s or 1h30m.
type Duration string

// Of returns the duration. The CRD refuses texts that are none, so that an empty one is an object that was
// made without the CRD's defaults.
func (d Duration) Of(otherwise time.Duration) time.Duration {
	if parsed, err := time.ParseDuration(string(d)); err == nil {
		return parsed
	}
	return otherwise
}
