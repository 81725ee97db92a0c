package annotation

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Subject is what expressions can ask about a container.
type Subject struct {
	ID, Name           string
	Labels             map[string]string
	PodID, PodUID      string
	PodName, Namespace string
	QOS                string // Guaranteed, Burstable, BestEffort
	PodLabels          map[string]string
}

// Expression is a predicate on a container: the value of a key, compared.
type Expression struct {
	Key      string   `yaml:"key"`
	Operator string   `yaml:"operator"`
	Values   []string `yaml:"values"`
}

// sameNamespace is the operator behind proxima.io/near; it cannot be written in YAML.
const sameNamespace = " same namespace"

// operators tells how many values each takes: -1 for any number.
var operators = map[string]int{
	"Equals": 1, "NotEqual": 1, "In": -1, "NotIn": -1, "Exists": 0, "NotExists": 0, "AlwaysTrue": -1,
	"Matches": 1, "MatchesNot": 1, "MatchesAny": -1, "MatchesNone": -1,
}

func (e *Expression) check() error {
	count, known := operators[e.Operator]
	switch {
	case !known:
		return fmt.Errorf("unknown operator %.40q (known: %s)", e.Operator, strings.Join(sortedKeys(operators), ", "))
	case count >= 0 && len(e.Values) != count:
		return fmt.Errorf("%s takes %d values, not %d", e.Operator, count, len(e.Values))
	case e.Operator == "AlwaysTrue":
		return nil
	}
	for _, key := range e.keys() {
		if !knownKey(key) {
			return fmt.Errorf("unknown key %.60q", key)
		}
	}
	if strings.HasPrefix(e.Operator, "Matches") {
		for _, glob := range e.Values {
			if _, err := path.Match(glob, ""); err != nil {
				return fmt.Errorf("%.60q is not a glob pattern", glob)
			}
		}
	}
	return nil
}

func knownKey(key string) bool {
	key = strings.TrimPrefix(key, "pod/")
	for _, prefix := range []string{"labels/", "tags/"} {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			return name != ""
		}
	}
	return slices.Contains([]string{"name", "namespace", "qosclass", "id", "uid", containerNameLabel}, key)
}

// containerNameLabel is the label that runtimes give containers; early CRI-RM took it as a key.
const containerNameLabel = "io.kubernetes.container.name"

// joint splits a key that joins several. It begins with the separator of the keys; a second punctuation mark,
// if there is one, separates the values instead of the first.
func (e *Expression) joint() (keys []string, separator string, ok bool) {
	if e.Key == "" || isKeyStart(e.Key[0]) {
		return nil, "", false
	}
	split, rest := e.Key[:1], e.Key[1:]
	separator = split
	if rest != "" && !isKeyStart(rest[0]) {
		separator, rest = rest[:1], rest[1:]
	}
	return strings.Split(strings.TrimPrefix(rest, split), split), separator, true
}

func isKeyStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (e *Expression) keys() []string {
	if keys, _, ok := e.joint(); ok {
		return keys
	}
	return []string{e.Key}
}

// value evaluates the key. Of a joint key the missing parts are empty, and it exists where any part does.
func (e *Expression) value(s *Subject) (string, bool) {
	keys, separator, ok := e.joint()
	if !ok {
		return s.lookup(e.Key)
	}
	values, exists := make([]string, len(keys)), false
	for i, key := range keys {
		value, found := s.lookup(key)
		values[i], exists = value, exists || found
	}
	return strings.Join(values, separator), exists
}

func (s *Subject) lookup(key string) (string, bool) {
	labels, name, id, uid := s.Labels, s.Name, s.ID, s.ID
	key, ofPod := strings.CutPrefix(key, "pod/")
	if ofPod {
		labels, name, id, uid = s.PodLabels, s.PodName, s.PodID, s.PodUID
	}
	if label, ok := strings.CutPrefix(key, "labels/"); ok {
		value, found := labels[label]
		if !found && label == containerNameLabel && !ofPod {
			return s.Name, true // the CRI door sees requests before the runtime adds this label
		}
		return value, found
	}
	switch key {
	case "name", containerNameLabel:
		return name, true
	case "namespace":
		return s.Namespace, true
	case "qosclass":
		return s.QOS, true
	case "id":
		return id, id != ""
	case "uid":
		return uid, uid != ""
	}
	return "", false // tags are CRI-RM's own and never set here
}

// holds evaluates the expression for the other container.
func (e *Expression) holds(writer, other *Subject) bool {
	if e.Operator == sameNamespace {
		return writer.Namespace == other.Namespace
	}
	value, exists := e.value(other)
	matches := func(glob string) bool {
		ok, err := path.Match(glob, value)
		return err == nil && ok
	}
	equals := func(v string) bool { return exists && v == value }
	switch e.Operator {
	case "Equals", "In":
		return slices.ContainsFunc(e.Values, equals)
	case "NotEqual", "NotIn":
		return !slices.ContainsFunc(e.Values, equals)
	case "Exists":
		return exists
	case "NotExists":
		return !exists
	case "Matches", "MatchesAny":
		return exists && slices.ContainsFunc(e.Values, matches)
	case "MatchesNot", "MatchesNone":
		return !exists || !slices.ContainsFunc(e.Values, matches)
	default: // AlwaysTrue; check has refused all others
		return true
	}
}
