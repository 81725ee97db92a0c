package annotation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"proxima.io/agent/internal/topology"
)

// Choice is a yes, a no, or nothing said.
type Choice int

const (
	Unsaid Choice = iota
	Yes
	No
)

// Or returns the choice as a bool, and what to take where nothing was said.
func (c Choice) Or(otherwise bool) bool {
	if c == Unsaid {
		return otherwise
	}
	return c == Yes
}

// Preferences are one container's wishes about its own CPUs and memory.
type Preferences struct {
	Shared          Choice // CPUs shared with others although exclusive ones would be due; No asks for exclusive ones
	Isolated        Choice // kernel-isolated CPUs
	RequireIsolated bool   // say so where there are none; CRI-RM fails the pod, we do not
	Reserved        Choice // the CPUs reserved for the system
	Priority        string // "", high, normal, low, none: which kind of core
	Unlimited       string // "", system, package, die, numa, l3cache: how wide a burstable container without a limit sits
	HideThreads     Choice // one thread of each core, its siblings kept idle
	SplitCores      bool   // single threads will do where whole cores are the default
	DeviceHints     Choice // sit near the devices that the container uses
	Devices         []string
	Memory          []topology.MemoryKind
	KeepCPUs        bool // leave the CPUs as the runtime sets them
	KeepMemory      bool
}

// setter puts an annotation's value into the preferences.
type setter func(*Preferences, string) error

// foreign are the preferences of CRI-RM and nri-plugins: NAME.DOMAIN or NAME.DOMAIN/pod, and
// NAME.DOMAIN/container.CONTAINER.
var foreign = map[string]setter{
	"prefer-shared-cpus":    choice(func(p *Preferences) *Choice { return &p.Shared }),
	"prefer-isolated-cpus":  choice(func(p *Preferences) *Choice { return &p.Isolated }),
	"prefer-reserved-cpus":  choice(func(p *Preferences) *Choice { return &p.Reserved }),
	"hide-hyperthreads":     choice(func(p *Preferences) *Choice { return &p.HideThreads }),
	"topologyhints":         hints,
	"require-isolated-cpus": yes(func(p *Preferences) *bool { return &p.RequireIsolated }),
	"cpu.preserve":          yes(func(p *Preferences) *bool { return &p.KeepCPUs }),
	"memory.preserve":       yes(func(p *Preferences) *bool { return &p.KeepMemory }),
	"prefer-cpu-priority":   word(func(p *Preferences) *string { return &p.Priority }, "high", "normal", "low", "none", "default"),
	"unlimited-burstable": word(func(p *Preferences) *string { return &p.Unlimited },
		"system", "package", "die", "numa", "l3cache"),
	"memory-type": memoryKinds,
}

// unserved are their keys that this agent knows but does not act upon.
var unserved = map[string]string{
	"cold-start":              "memory is not moved in time; use memory-type",
	"scheduling-class":        "scheduling classes are not set by this agent",
	"cpu-class":               "CPU frequency classes are not set by this agent",
	"pick-resources-by-hints": "devices choose the pool, not the CPUs inside it",
	"allow.topologyhints":     "devices are not chosen by path; name them with proxima.io/device",
	"deny.topologyhints":      "devices are not chosen by path; use topologyhints: none, and proxima.io/device",
	"strict.topologyhints":    "no pod is failed by the policy",
	"irq-affinity":            "interrupts are not moved by this agent",
	"rdtclass":                "cache and memory bandwidth classes (RDT) are not set by this agent",
	"blockioclass":            "block I/O classes are not set by this agent",
	"toptierlimit":            "top tier memory limits are not set by this agent",
	"balloon.balloons":        "balloons belong to another policy",
}

// preferences reads both foreign dialects. Later ones win: CRI-RM before nri-plugins, the pod before the
// container.
func (r *reader) preferences() {
	for _, name := range sortedKeys(foreign) {
		set := foreign[name]
		for _, domain := range []string{criRMDomain, nriDomain} {
			r.oldForm(domain+"/"+name, set)
		}
		for _, scope := range []string{"", "/pod", "/container." + r.container} {
			for _, domain := range []string{criRMDomain, nriDomain} {
				key := name + "." + domain + scope
				if value, ok := r.take(key); ok {
					r.set(r.wishes.Preferences, key, value, set)
				}
			}
		}
	}
}

// oldForm reads the spelling of CRI-RM's early releases: DOMAIN/NAME with a value for the pod or a YAML map
// by container.
func (r *reader) oldForm(key string, set setter) {
	value, ok := r.take(key)
	if !ok {
		return
	}
	var byContainer map[string]string
	if err := yaml.Unmarshal([]byte(value), &byContainer); err != nil {
		r.set(r.wishes.Preferences, key, value, set)
		return
	}
	if own, ok := byContainer[r.container]; ok {
		r.set(r.wishes.Preferences, key, own, set)
	}
}

// set puts a value into what is wished for so far; one that cannot be read changes nothing.
func (r *reader) set(soFar Preferences, key, value string, set setter) {
	err := set(&soFar, value)
	if rest := unservedPart(""); errors.As(err, &rest) {
		r.found(Unserved, key, "%v", err)
	} else if err != nil {
		r.found(Malformed, key, "%v", err)
		return
	}
	r.wishes.Preferences = soFar
}

// unservedPart is a setter's error where it has done all but a part of what the value asks for.
type unservedPart string

func (u unservedPart) Error() string { return string(u) }

func choice(field func(*Preferences) *Choice) setter {
	return func(p *Preferences, value string) error {
		yes, err := strconv.ParseBool(strings.ToLower(value))
		if err != nil {
			return fmt.Errorf("%.40q is neither true nor false", value)
		}
		*field(p) = No
		if yes {
			*field(p) = Yes
		}
		return nil
	}
}

// hints reads what topologyhints can say: true or false, or the kinds of hints to follow. Of these, devices
// are known here.
func hints(p *Preferences, value string) error {
	if choice(func(p *Preferences) *Choice { return &p.DeviceHints })(p, value) == nil {
		return nil
	}
	devices, rest := No, []string{}
	for kind := range strings.SplitSeq(value, ",") {
		switch kind = strings.ToLower(strings.TrimSpace(kind)); kind {
		case "all", "devices":
			devices = Yes
		case "mounts", "pod-resources":
			rest = append(rest, kind)
		case "none":
		default:
			return fmt.Errorf("%.40q is none of true, false, all, none, devices, mounts, pod-resources", kind)
		}
	}
	p.DeviceHints = devices
	if len(rest) > 0 {
		return unservedPart(strings.Join(rest, " and ") + " give no hints here, only devices do")
	}
	return nil
}

func yes(field func(*Preferences) *bool) setter {
	return func(p *Preferences, value string) error {
		var c Choice
		err := choice(func(*Preferences) *Choice { return &c })(p, value)
		if err == nil {
			*field(p) = c == Yes
		}
		return err
	}
}

func word(field func(*Preferences) *string, words ...string) setter {
	return func(p *Preferences, value string) error {
		if !slices.Contains(words, value) {
			return fmt.Errorf("%.40q is none of %s", value, strings.Join(words, ", "))
		}
		if value == "default" { // what is configured
			value = ""
		}
		*field(p) = value
		return nil
	}
}

func memoryKinds(p *Preferences, value string) error {
	var kinds []topology.MemoryKind
	for part := range strings.SplitSeq(value, ",") {
		kind := topology.MemoryKind(strings.ToLower(strings.TrimSpace(part)))
		if kind == "mixed" { // nri-plugins' word for all of them
			kinds = append(kinds, topology.DRAM, topology.PMEM, topology.HBM)
			continue
		}
		if kind != topology.DRAM && kind != topology.PMEM && kind != topology.HBM {
			return fmt.Errorf("%.40q is none of dram, pmem, hbm", part)
		}
		kinds = append(kinds, kind)
	}
	p.Memory = kinds
	return nil
}
