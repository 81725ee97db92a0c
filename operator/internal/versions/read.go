package versions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxBytes is the most that a file or an answer may have.
const MaxBytes = 1 << 20

// ReadFile reads a file in Percona's form, as JSON or as YAML. It refuses what it does not know, with its
// line.
func ReadFile(data []byte) ([]Offer, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("%d bytes are more than the %d that are read", len(data), MaxBytes)
	}
	// YAML takes JSON, but for tabs. None of them is in a string, where JSON forbids them.
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		data = bytes.ReplaceAll(data, []byte("\t"), []byte(" "))
	}
	return reader{}.offers(data)
}

// ReadAnswer reads what a version service answers. It looks at one component alone, and passes over fields
// that it does not know.
func ReadAnswer(data []byte, component string) ([]Offer, error) {
	if !json.Valid(data) {
		return nil, errors.New("the answer is no JSON")
	}
	return reader{component: camel(component)}.offers(data)
}

// reader walks a document. Its component is the only one that counts; without one, all do.
type reader struct {
	component string
}

// pair is a key of a mapping, spelt as the API spells it, with its value.
type pair struct {
	key         string
	name, value *yaml.Node
}

func (r reader) offers(data []byte) ([]Offer, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, errors.New("line 1: it is empty: write `versions:` and a list of products below it")
	} else if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is a second document in it: write all products below one `versions:`")
	}
	var offers []Offer
	err := r.each(document.Content[0], "the document", []string{"versions"}, func(p pair) error {
		if p.value.Kind != yaml.SequenceNode {
			return at(p.value, "`versions` is no list: write each product behind a dash")
		}
		for _, item := range p.value.Content {
			offer, err := r.offer(item)
			if err != nil {
				return err
			}
			same := func(o Offer) bool { return o.Product == offer.Product && o.Operator == offer.Operator }
			if slices.ContainsFunc(offers, same) {
				return at(item, "%s %s is there twice: put its components into one", offer.Product,
					offer.Operator)
			}
			offers = append(offers, offer)
		}
		return nil
	})
	return offers, err
}

var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (r reader) offer(node *yaml.Node) (Offer, error) {
	offer := Offer{Matrix: map[string][]Entry{}}
	err := r.each(node, "a product", []string{"product", "operator", "matrix"}, func(p pair) error {
		switch p.key {
		case "product":
			return pathPart(p.value, &offer.Product)
		case "operator":
			return pathPart(p.value, &offer.Operator)
		}
		return r.each(p.value, "`matrix`", nil, func(p pair) error {
			if r.component != "" && p.key != r.component {
				return nil
			}
			entries, err := r.entries(p.value)
			if len(entries) > 0 {
				offer.Matrix[p.key] = entries
			}
			return err
		})
	})
	if err == nil && (offer.Product == "" || offer.Operator == "") {
		err = at(node, "a product without `product` or `operator`: its path is made of both")
	}
	return offer, err
}

// entries are the versions of a component, the newest first.
func (r reader) entries(node *yaml.Node) ([]Entry, error) {
	var entries []Entry
	err := r.each(node, "a component", nil, func(p pair) error {
		version, err := ParseVersion(p.name.Value)
		if err != nil {
			return at(p.name, "%s", err)
		}
		entry, err := r.entry(p.value)
		entry.Version = version
		entries = append(entries, entry)
		return err
	})
	slices.SortStableFunc(entries, func(a, b Entry) int {
		if a.Version.Newer(b.Version) {
			return -1
		}
		return 1
	})
	return entries, err
}

var fields = []string{
	"imagePath", "imageHash", "imageHashArm64", "imageReleaseTimestamp", "status", "critical",
}

var statuses = []string{Recommended, "available", "required", Disabled}

func (r reader) entry(node *yaml.Node) (Entry, error) {
	var entry Entry
	err := r.each(node, "a version", fields, func(p pair) error {
		switch p.key {
		case "imagePath":
			return image(p.value, &entry.Image)
		case "imageHash":
			return scalar(p.value, &entry.Hash)
		case "imageHashArm64":
			return scalar(p.value, &entry.HashARM64)
		case "status":
			return status(p.value, &entry.Status)
		case "critical":
			if p.value.Decode(&entry.Critical) != nil {
				return at(p.value, "`critical` is neither true nor false")
			}
		}
		return nil
	})
	if err == nil && entry.Image == "" {
		err = at(node, "a version without image: write `imagePath: REGISTRY/NAME:TAG`")
	}
	if err == nil && entry.Status == "" {
		err = at(node, "a version without status: write `status: recommended` or `available`")
	}
	return entry, err
}

// each calls f for every pair of a mapping whose keys are these; nil: any.
func (r reader) each(node *yaml.Node, what string, keys []string, f func(pair) error) error {
	if node.Kind != yaml.MappingNode {
		return at(node, "%s has to be `key: value`", what)
	}
	seen := map[string]bool{}
	for i := 0; i < len(node.Content); i += 2 {
		p := pair{key: node.Content[i].Value, name: node.Content[i], value: node.Content[i+1]}
		if p.name.Kind != yaml.ScalarNode || p.value.Kind == yaml.AliasNode {
			return at(p.name, "aliases and keys that are no words are not read: write it out")
		}
		p.key = camel(p.key)
		if seen[p.key] {
			return at(p.name, "`%s` is there twice: leave one of them out", short(p.name.Value))
		}
		seen[p.key] = true
		if keys != nil && !slices.Contains(keys, p.key) {
			if r.component != "" {
				continue
			}
			return at(p.name, "%s has no `%s`: what it may have is %s", what, short(p.name.Value),
				strings.Join(keys, ", "))
		}
		if err := f(p); err != nil {
			return err
		}
	}
	return nil
}

// camel is a key as the API spells it (imagePath), from the spelling of Percona's files (image_path).
func camel(key string) string {
	words := strings.Split(key, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

func scalar(node *yaml.Node, to *string) error {
	if node.Kind != yaml.ScalarNode {
		return at(node, "there has to be one word")
	}
	if node.Tag != "!!null" {
		*to = node.Value
	}
	return nil
}

func pathPart(node *yaml.Node, to *string) error {
	if err := scalar(node, to); err != nil {
		return err
	}
	if !name.MatchString(*to) {
		return at(node, "%q is no part of a path: write letters, digits, dots and hyphens", short(*to))
	}
	return nil
}

var reference = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*` +
	`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)

func image(node *yaml.Node, to *string) error {
	if err := scalar(node, to); err != nil {
		return err
	}
	if len(*to) > 512 || !reference.MatchString(*to) {
		return at(node, "%q is no image: write it as REGISTRY/NAME:TAG", short(*to))
	}
	return nil
}

func status(node *yaml.Node, to *string) error {
	if err := scalar(node, to); err != nil {
		return err
	}
	if !slices.Contains(statuses, *to) {
		return at(node, "%q is no status: write one of %s", short(*to), strings.Join(statuses, ", "))
	}
	return nil
}

func at(node *yaml.Node, format string, values ...any) error {
	return fmt.Errorf("line %d: %s", node.Line, fmt.Sprintf(format, values...))
}

// Only is the one version that an answer offers for a component.
func Only(offers []Offer, product, operator, component string) (Entry, *Problem) {
	for _, offer := range offers {
		if offer.Product != product || offer.Operator != operator {
			continue
		}
		entries := offer.Matrix[camel(component)]
		if len(entries) == 1 {
			return entries[0], nil
		}
		return Entry{}, problem(Malformed, "the version service offers %d versions of %s, and one is "+
			"expected; it offers %s", len(entries), component, known(offer.Matrix))
	}
	return Entry{}, problem(Malformed, "the version service answers nothing for %s %s", product, operator)
}

func known(matrix map[string][]Entry) string {
	if len(matrix) == 0 {
		return "nothing"
	}
	return strings.Join(slices.Sorted(maps.Keys(matrix)), ", ")
}
