package config

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// option reads one option's value.
type option func(*Options, *yaml.Node) error

// options are all there are, by name. docs/node-agent.md lists them with what they do.
var options = map[string]option{
	"pinCPU":                 boolean(func(o *Options) *bool { return &o.PinCPU }),
	"pinMemory":              boolean(func(o *Options) *bool { return &o.PinMemory }),
	"preferIsolatedCPUs":     boolean(func(o *Options) *bool { return &o.PreferIsolated }),
	"preferSharedCPUs":       boolean(func(o *Options) *bool { return &o.PreferShared }),
	"colocatePods":           boolean(func(o *Options) *bool { return &o.ColocatePods }),
	"colocateNamespaces":     boolean(func(o *Options) *bool { return &o.ColocateNamespaces }),
	"newcomerAffinityOnly":   boolean(func(o *Options) *bool { return &o.NewcomerAffinityOnly }),
	"availableResources":     resources(func(o *Options) *CPUs { return &o.Available }, 1),
	"reservedResources":      resources(func(o *Options) *CPUs { return &o.Reserved }, 0),
	"reservedPoolNamespaces": globs,
	"defaultCPUPriority":     oneOf(func(o *Options) *string { return &o.Priority }, "high", "normal", "low", "none"),
	"unlimitedBurstable":     oneOf(func(o *Options) *string { return &o.Unlimited }, "system", "package", "die", "numa", "l3cache"),
	"others":                 others,
}

func (l layer) apply(o *Options) error {
	if l.node.Kind == yaml.ScalarNode && l.node.Tag == "!!null" {
		return nil
	}
	if l.node.Kind != yaml.MappingNode {
		return l.fault(l.node, "the layer is not a map of options")
	}
	for i := 0; i < len(l.node.Content); i += 2 {
		if l.node.Content[i].Value == "policy" {
			return l.applyCRIRM(o)
		}
	}
	seen := map[string]bool{}
	for i := 0; i < len(l.node.Content); i += 2 {
		key, value := l.node.Content[i], l.node.Content[i+1]
		if _, ok := options[key.Value]; !ok {
			return l.fault(key, "unknown option %.60q; the options are %s", key.Value,
				strings.Join(slices.Sorted(maps.Keys(options)), ", "))
		}
		if seen[key.Value] {
			return l.fault(key, "%s is there twice; keep one", key.Value)
		}
		seen[key.Value] = true
		if err := l.read(o, key.Value, key, value); err != nil {
			return err
		}
	}
	return nil
}

// read reads the option of that name, however its key is spelt, and remembers where it stands.
func (l layer) read(o *Options, name string, key, value *yaml.Node) error {
	if err := options[name](o, value); err != nil {
		return l.fault(value, "%s: %v", key.Value, err)
	}
	if o.written == nil {
		o.written = map[string]place{}
	}
	o.written[name] = place{l.file, value.Line}
	return nil
}

func boolean(field func(*Options) *bool) option {
	return func(o *Options, value *yaml.Node) error {
		if err := value.Decode(field(o)); err != nil {
			return fmt.Errorf("%.40q is neither true nor false", value.Value)
		}
		return nil
	}
}

func oneOf(field func(*Options) *string, words ...string) option {
	return func(o *Options, value *yaml.Node) error {
		if !slices.Contains(words, value.Value) {
			return fmt.Errorf("%.40q is none of %s", value.Value, strings.Join(words, ", "))
		}
		*field(o) = value.Value
		return nil
	}
}

func globs(o *Options, value *yaml.Node) error {
	var list []string
	if err := value.Decode(&list); err != nil {
		return fmt.Errorf("not a list of namespaces")
	}
	for _, glob := range list {
		if _, err := path.Match(glob, ""); err != nil {
			return fmt.Errorf("%.60q is not a glob pattern; escape [ with a backslash", glob)
		}
	}
	o.ReservedNamespaces = list
	return nil
}

func others(o *Options, value *yaml.Node) error {
	var word string
	if err := oneOf(func(*Options) *string { return &word }, string(StandBack), string(TakeRest), string(Ignore))(o, value); err != nil {
		return err
	}
	o.Others = Others(word)
	return nil
}

// resources reads {cpu: AMOUNT}; the name may be written in capitals, as CRI-RM does. Of memory, which others
// limit too, it notes that nothing is done. least is the smallest amount that makes sense, in thousandths.
func resources(field func(*Options) *CPUs, least int) option {
	return func(o *Options, value *yaml.Node) error {
		var amounts map[string]string
		if err := value.Decode(&amounts); err != nil {
			return fmt.Errorf("not a map such as {cpu: 750m}")
		}
		for name, amount := range amounts {
			if strings.EqualFold(name, "memory") {
				o.Notes = append(o.Notes, name+" is not limited by this agent; only cpu is")
				continue
			}
			if !strings.EqualFold(name, "cpu") {
				return fmt.Errorf("%.40q is no resource; write {cpu: %.40s}", name, amount)
			}
			cpus, err := parseCPUs(amount)
			if err != nil {
				return err
			}
			if cpus.Set.Empty() && cpus.Milli < least {
				return fmt.Errorf("%s leaves no CPU; leave the option out to have all of them", amount)
			}
			*field(o) = cpus
		}
		return nil
	}
}
