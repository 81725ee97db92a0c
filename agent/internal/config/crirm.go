package config

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"proxima.io/agent/internal/spelling"
)

// applyCRIRM reads a layer in CRI-RM's form: a section policy with the options of the topology-aware policy
// below it. Its names are ours with a capital first letter. Other sections (logger, rdt, blockio, …) have no
// effect here, and say so.
func (l layer) applyCRIRM(o *Options) error {
	for i := 0; i < len(l.node.Content); i += 2 {
		key, value := l.node.Content[i], l.node.Content[i+1]
		if key.Value != "policy" {
			o.Notes = append(o.Notes, "section "+key.Value+" of CRI-RM's configuration has no effect here")
			continue
		}
		body := value
		if body.Kind == yaml.ScalarNode { // in a ConfigMap the section is text
			var inner yaml.Node
			if err := yaml.Unmarshal([]byte(body.Value), &inner); err != nil || len(inner.Content) == 0 {
				return l.fault(value, "policy: the section is not YAML")
			}
			body = inner.Content[0]
			below(value, body)
		}
		if err := l.policySection(o, body); err != nil {
			return err
		}
	}
	return nil
}

// below counts the lines of a text's YAML from where the text itself begins: the line after its |.
func below(text, body *yaml.Node) {
	body.Line += text.Line
	for _, inside := range body.Content {
		below(text, inside)
	}
}

func (l layer) policySection(o *Options, body *yaml.Node) error {
	if body.Kind != yaml.MappingNode {
		return l.fault(body, "policy: not a map")
	}
	for i := 0; i < len(body.Content); i += 2 {
		key, value := body.Content[i], body.Content[i+1]
		switch strings.ToLower(key.Value) {
		case "active":
			if value.Value != "topology-aware" {
				return l.fault(value, "policy %.40q has no counterpart here; only topology-aware has", value.Value)
			}
		case "topology-aware":
			if err := l.policySection(o, value); err != nil {
				return err
			}
		default:
			if err := l.foreignOption(o, key, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l layer) foreignOption(o *Options, key, value *yaml.Node) error {
	for name := range options {
		if strings.EqualFold(name, key.Value) && name != "others" && name != "newcomerAffinityOnly" {
			return l.read(o, name, key, value)
		}
	}
	near := spelling.Nearest(key.Value, slices.Sorted(maps.Keys(options)), 2)
	o.Notes = append(o.Notes, "option "+key.Value+" of CRI-RM's policy has no effect here"+spelling.Hint(near))
	return nil
}
