package annotation

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Affinity is one pull or push that a container's pod wrote down.
type Affinity struct {
	// Scope bounds the containers that count; nil is the container's own pod.
	Scope *Expression
	// Match must all hold for the other container.
	Match  []Expression
	Weight int    // -1000 … 1000; negative pushes away
	Source string // the annotation's key
}

// Applies tells whether the affinity, written by the first, is about the other.
func (a *Affinity) Applies(writer, other *Subject) bool {
	if a.Scope == nil {
		if writer.PodID != other.PodID {
			return false
		}
	} else if !a.Scope.holds(writer, other) {
		return false
	}
	for i := range a.Match {
		if !a.Match[i].holds(writer, other) {
			return false
		}
	}
	return true
}

const maxWeight = 1000

// Check tells what is wrong with an affinity that did not come out of Read.
func (a *Affinity) Check() error {
	if a.Weight < -maxWeight || a.Weight > maxWeight {
		return fmt.Errorf("weight %d is not within -1000 … 1000", a.Weight)
	}
	if a.Scope != nil && a.Scope.Operator != sameNamespace {
		if err := a.Scope.check(); err != nil {
			return err
		}
	}
	for i := range a.Match {
		if err := a.Match[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// affinityYAML is one entry as users write it. Key, operator and values beside an empty scope are a slip that
// the source's own printed example has; they are taken as the scope.
type affinityYAML struct {
	Scope      *Expression `yaml:"scope"`
	Match      *Expression `yaml:"match"`
	Weight     *int        `yaml:"weight"`
	Expression `yaml:",inline"`
}

// affinity reads a map from container name to a list, of entries or (short form) of names of containers of
// the same pod.
func (r *reader) affinity(key string, sign int) {
	value, ok := r.take(key)
	if !ok {
		return
	}
	var byContainer map[string]yaml.Node
	if err := yaml.Unmarshal([]byte(value), &byContainer); err != nil {
		r.found(Malformed, key, "not a YAML map from container name to a list: %v", err)
		return
	}
	list, ok := byContainer[r.container]
	if !ok {
		return
	}
	if list.Kind != yaml.SequenceNode {
		r.found(Malformed, key, "container %s: line %d: not a list", r.container, list.Line)
		return
	}
	for _, item := range list.Content {
		a, err := r.affinityEntry(key, item, sign)
		if err != nil {
			r.found(Malformed, key, "container %s: line %d: %v", r.container, item.Line, err)
			continue
		}
		r.wishes.Affinities = append(r.wishes.Affinities, a)
	}
}

func (r *reader) affinityEntry(key string, item *yaml.Node, sign int) (Affinity, error) {
	if item.Kind == yaml.ScalarNode {
		match := Expression{Key: "name", Operator: "Equals", Values: []string{item.Value}}
		return Affinity{Match: []Expression{match}, Weight: sign, Source: key}, nil
	}
	var entry affinityYAML
	if err := decodeStrictly(item, &entry); err != nil {
		return Affinity{}, err
	}
	if stray := entry.Expression; stray.Operator != "" {
		if entry.Scope != nil && entry.Scope.Operator != "" {
			return Affinity{}, fmt.Errorf("an expression beside scope, and a scope too")
		}
		r.found(Odd, key, "container %s: line %d: key, operator and values stand beside scope, not below it; taken as the scope",
			r.container, item.Line)
		entry.Scope = &stray
	}
	if entry.Match == nil {
		return Affinity{}, fmt.Errorf("match is missing")
	}
	if entry.Scope != nil && entry.Scope.Operator == "" {
		if entry.Scope.Key != "" || len(entry.Scope.Values) > 0 {
			return Affinity{}, fmt.Errorf("scope: operator is missing")
		}
		entry.Scope = nil // an empty scope is the same as none
	}
	for _, e := range []*Expression{entry.Scope, entry.Match} {
		if e == nil {
			continue
		}
		if err := e.check(); err != nil {
			return Affinity{}, err
		}
	}
	weight := 1
	if entry.Weight != nil {
		weight = *entry.Weight
	}
	if weight < -maxWeight || weight > maxWeight {
		return Affinity{}, fmt.Errorf("weight %d is not within -1000 … 1000", weight)
	}
	return Affinity{Scope: entry.Scope, Match: []Expression{*entry.Match}, Weight: sign * weight, Source: key}, nil
}

// decodeStrictly refuses keys that the target does not have; yaml.Node.Decode alone lets them pass.
func decodeStrictly(node *yaml.Node, into *affinityYAML) error {
	known := map[string]bool{"scope": true, "match": true, "weight": true, "key": true, "operator": true, "values": true}
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("neither a container's name nor a map with match")
	}
	for i := 0; i < len(node.Content); i += 2 {
		if name := node.Content[i].Value; !known[name] {
			return fmt.Errorf("unknown field %.40q", name)
		}
	}
	return node.Decode(into)
}
