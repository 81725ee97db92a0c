package policy

import (
	"path"

	"proxima.io/agent/internal/annotation"
)

// Guaranteed is the quality-of-service class whose containers can have exclusive CPUs.
const Guaranteed = "Guaranteed"

// Container is one container that wants a place, as either door describes it.
type Container struct {
	annotation.Subject `json:"subject"` // its ID is the key of the state
	annotation.Wishes  `json:"wishes"`
	Request            int   `json:"request"` // thousandths of a CPU
	Limit              int   `json:"limit"`   // thousandths of a CPU, 0 for none
	Memory             int64 `json:"memory"`  // bytes promised: the limit, else the request
	// NoMemoryLimit: it may come to need more than it is promised.
	NoMemoryLimit bool `json:"noMemoryLimit,omitempty"`
	// Uses names devices (as in topology.Device) that the runtime gives to the container.
	Uses []string `json:"uses,omitempty"`
	// Given is the pin that somebody else has set for a container which is therefore left alone.
	Given Pin `json:"given,omitzero"`
}

// Kind is the kind of CPUs that a container has.
type Kind string

const (
	Shared    Kind = "shared"    // the pool's CPUs that nobody has for himself
	Exclusive Kind = "exclusive" // its own
	Mixed     Kind = "mixed"     // its own, and the pool's shared ones for the fraction
	Reserved  Kind = "reserved"  // the pool's CPUs that are reserved for the system
	Unpinned  Kind = "unpinned"  // left alone
)

// demand is what a container is due.
type demand struct {
	kind     Kind
	full     int // exclusive CPUs
	milli    int // of shared or reserved ones
	isolated bool
	note     string // why it can never be what the annotations ask for
	short    string // why it is less than the container is due at the moment
}

// Note tells what a container's annotations ask for and it cannot have on any machine, and why; empty is
// nothing.
func (p *Policy) Note(c *Container) string { return p.demand(c).note }

func (p *Policy) demand(c *Container) demand {
	switch {
	case c.KeepCPUs:
		return demand{kind: Unpinned}
	case c.Reserved.Or(p.reservedNamespace(c.Namespace)) && !p.Options.Reserved.Empty():
		return demand{kind: Reserved, milli: c.Request}
	}
	shared := demand{kind: Shared, milli: c.Request, note: c.note(true)}
	if c.QOS != Guaranteed {
		return shared
	}
	full, fraction := c.Request/1000, c.Request%1000
	switch {
	case full == 0, c.Shared.Or(p.PreferShared):
		return shared
	case full >= 2 && fraction > 0 && c.Shared != annotation.No:
		return shared // a fraction above two CPUs is shared unless asked otherwise
	}
	d := demand{
		kind: Exclusive, full: full, milli: fraction, isolated: c.RequireIsolated || c.Isolated.Or(p.PreferIsolated), note: c.note(false),
	}
	if fraction > 0 {
		d.kind = Mixed
	}
	return d
}

// note tells what a container's annotations ask for, and CPUs that are not reserved, or are shared, cannot
// give.
func (c *Container) note(shared bool) string {
	switch {
	case c.Reserved == annotation.Yes:
		return "it asks for reserved CPUs, and the configuration reserves none"
	case !shared:
		return ""
	case c.QOS != Guaranteed && (c.Shared == annotation.No || c.Isolated == annotation.Yes || c.RequireIsolated):
		return "exclusive CPUs are for Guaranteed pods"
	case c.HideThreads == annotation.Yes:
		return "one thread of each core is for exclusive CPUs, and it is due shared ones"
	case c.Priority == "high" || c.Priority == "low":
		return "the kind of core is chosen for exclusive CPUs, and it is due shared ones"
	}
	return ""
}

func (p *Policy) reservedNamespace(namespace string) bool {
	if namespace == "kube-system" {
		return true
	}
	for _, glob := range p.ReservedNamespaces {
		if ok, err := path.Match(glob, namespace); err == nil && ok {
			return true
		}
	}
	return false
}
