package config

import (
	"errors"
	"fmt"
	"strings"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/quantity"
	"proxima.io/agent/internal/topology"
)

// CPUs is an amount of CPUs (thousandths), or a set of them, or all but a set.
type CPUs struct {
	Milli   int
	Set     cpuset.Set
	Exclude bool
}

func (c CPUs) given() bool { return c.Milli > 0 || !c.Set.Empty() }

func parseCPUs(text string) (CPUs, error) {
	for prefix, exclude := range map[string]bool{"cpuset:": false, "exclude-cpuset:": true} {
		if list, ok := strings.CutPrefix(text, prefix); ok {
			set, err := cpuset.Parse(list)
			if err == nil && set.Empty() {
				err = fmt.Errorf("%q names no CPU; write %s0-3", text, prefix)
			}
			return CPUs{Set: set, Exclude: exclude}, err
		}
	}
	milli, err := quantity.MilliCPU(text)
	if err != nil {
		return CPUs{}, fmt.Errorf("%w; or write cpuset:0-3 or exclude-cpuset:0-3", err)
	}
	return CPUs{Milli: milli}, nil
}

// Had is what amounts of CPUs were made of before, and whose CPUs would be missed. An amount keeps the CPUs
// that it has, so that nobody has to move when others come and go.
type Had struct{ Available, Reserved, Taken cpuset.Set }

// Resolve turns the options into those of the policy, for a machine.
func (o *Options) Resolve(machine *topology.Topology, had Had) (policy.Options, error) {
	available := o.Available.of(machine, machine.Online, had.Available, cpuset.Set{})
	if !o.Available.given() {
		available = machine.Online
	}
	if available.Empty() {
		return policy.Options{}, o.fault("availableResources", "leave no CPU: this machine has %s", machine.Online)
	}
	reserved := cpuset.Set{}
	if o.Reserved.given() {
		if reserved = o.Reserved.of(machine, available.Minus(machine.Isolated), had.Reserved, had.Taken); reserved.Empty() {
			return policy.Options{}, o.fault("reservedResources", "name none of the available CPUs %s", available)
		}
		if available.Minus(reserved).Empty() {
			return policy.Options{}, o.fault("reservedResources", "take all available CPUs %s; leave some for pods", available)
		}
	}
	return policy.Options{
		Available: available, Reserved: reserved, PinCPU: o.PinCPU, PinMemory: o.PinMemory,
		PreferIsolated: o.PreferIsolated, PreferShared: o.PreferShared,
		ColocatePods: o.ColocatePods, ColocateNamespaces: o.ColocateNamespaces, ReservedNamespaces: o.ReservedNamespaces,
		Priority: o.Priority, Unlimited: o.Unlimited, NewcomerAffinityOnly: o.NewcomerAffinityOnly,
	}, nil
}

// fault says what is wrong with an option, and where it was written.
func (o *Options) fault(option, format string, args ...any) error {
	message := option + " " + fmt.Sprintf(format, args...)
	if at, known := o.written[option]; known {
		return &Fault{at.file, at.line, message}
	}
	return errors.New(message)
}

// of returns the CPUs out of those to be had. An amount is cut from what it had, then from the lowest cores,
// whole ones as far as it goes; what is taken comes last.
func (c CPUs) of(machine *topology.Topology, from, had, taken cpuset.Set) cpuset.Set {
	switch {
	case c.Exclude:
		return from.Minus(c.Set)
	case !c.Set.Empty():
		return from.Intersect(c.Set)
	}
	var got []int
	for _, part := range []cpuset.Set{from.Intersect(had), from.Minus(had).Minus(taken), from.Minus(had).Intersect(taken)} {
		for _, cpu := range machine.CPUs {
			siblings := cpu.Siblings.Intersect(part)
			if siblings.First() != cpu.ID {
				continue
			}
			for _, id := range siblings.IDs() {
				if len(got)*1000 < c.Milli {
					got = append(got, id)
				}
			}
		}
	}
	return cpuset.Of(got...)
}
