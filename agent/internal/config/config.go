// Package config reads the agent's options: a file with layers, or a directory whose files are the layers
// (which is what a mounted ConfigMap is).
//
// The layers are default, group.NAME and node.NAME. They are laid over one another in that order, option by
// option. A layer is written in our own words, which are those of nri-plugins where both have an option, or
// as CRI-RM's policy section.
//
// A configuration with any fault is refused whole: every error names file, line and remedy.
//
// # Layout
//
//	config.go   Options, and how layers are found
//	option.go   one entry an option: its name and how its value is read
//	crirm.go    CRI-RM's policy section
//	resolve.go  quantities become CPUs of a machine
//	watch.go    a new configuration when the file changes
package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Options are all that can be configured. Every one of them may change under running containers.
type Options struct {
	PinCPU               bool
	PinMemory            bool
	Available            CPUs
	Reserved             CPUs
	PreferIsolated       bool
	PreferShared         bool
	ColocatePods         bool
	ColocateNamespaces   bool
	ReservedNamespaces   []string
	Priority             string
	Unlimited            string
	NewcomerAffinityOnly bool
	// Others says what to do where somebody else pins containers on this node.
	Others Others
	// Notes are parts of a foreign configuration that have no effect here.
	Notes []string
	// written tells where each option was written, by its name.
	written map[string]place
}

type place struct {
	file string
	line int
}

// Others are the ways to live with another that pins.
type Others string

const (
	StandBack Others = "stand-back" // change nothing, say why
	TakeRest  Others = "take-rest"  // use only the CPUs that they leave
	Ignore    Others = "ignore"
)

// Default is what holds without a configuration.
func Default() Options {
	return Options{PinCPU: true, PinMemory: true, Unlimited: "package", Others: StandBack}
}

// Where names the layers that count on this node.
type Where struct{ Node, Group string }

func (w Where) layers() []string {
	names := []string{"default"}
	if w.Group != "" {
		names = append(names, "group."+w.Group)
	}
	if w.Node != "" {
		names = append(names, "node."+w.Node)
	}
	return names
}

// Fault is one thing wrong with a configuration.
type Fault struct {
	File    string
	Line    int
	Message string
}

func (f *Fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message) }

// maxFile bounds a configuration file; a ConfigMap holds at most 1 MiB.
const maxFile = 1 << 20

// Load reads a configuration for a node.
func Load(path string, where Where) (Options, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Options{}, err
	}
	layers := map[string]layer{}
	if info.IsDir() {
		err = directory(path, where, layers)
	} else {
		err = file(path, layers)
	}
	if err != nil {
		return Options{}, err
	}
	options := Default()
	found := false
	for _, name := range where.layers() {
		if l, ok := layers[name]; ok {
			found = true
			if err := l.apply(&options); err != nil {
				return Options{}, err
			}
		}
	}
	if !found { // its layers are for other nodes
		options.Notes = append(options.Notes, fmt.Sprintf("%s has none of the layers %s", path, strings.Join(where.layers(), ", ")))
	}
	return options, nil
}

// layer is one layer before it is read.
type layer struct {
	file string
	node *yaml.Node
}

func (l layer) fault(at *yaml.Node, format string, args ...any) error {
	return &Fault{l.file, at.Line, fmt.Sprintf(format, args...)}
}

// directory takes each file as the layer of its name; Kubernetes puts other things (..data) beside them.
// CRI-RM's ConfigMap of one node has its sections as files, of which the policy counts.
func directory(path string, where Where, layers map[string]layer) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	names := []string{}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	if slices.Contains(names, "policy") {
		root, err := parse(filepath.Join(path, "policy"))
		if root != nil {
			sections := &yaml.Node{Kind: yaml.MappingNode, Line: root.Line}
			for _, name := range names {
				body := root
				if name != "policy" {
					body = &yaml.Node{Kind: yaml.ScalarNode} // has no effect, and is named for it
				}
				sections.Content = append(sections.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name, Line: body.Line}, body)
			}
			layers["default"] = layer{filepath.Join(path, "policy"), sections}
		}
		return err
	}
	for _, name := range names {
		file := filepath.Join(path, name)
		if !isLayer(name) {
			return &Fault{file, 1, fmt.Sprintf("%.60q is not a layer; layers are default, group.NAME and node.NAME", name)}
		}
		if !slices.Contains(where.layers(), name) {
			continue
		}
		root, err := parse(file)
		if err != nil {
			return err
		}
		if root != nil {
			layers[name] = layer{file, root}
		}
	}
	return nil
}

func isLayer(name string) bool {
	return name == "default" || strings.HasPrefix(name, "group.") || strings.HasPrefix(name, "node.")
}

// file splits one file into its layers. A file without layers (CRI-RM's fallback.cfg) is the default layer as
// a whole.
func file(path string, layers map[string]layer) error {
	root, err := parse(path)
	if err != nil {
		return err
	}
	if root == nil {
		layers["default"] = layer{path, &yaml.Node{Kind: yaml.MappingNode}}
		return nil
	}
	whole := layer{path, root}
	if root.Kind != yaml.MappingNode {
		return whole.fault(root, "not a map; write layers such as default:")
	}
	for i := 0; i < len(root.Content); i += 2 {
		key := root.Content[i]
		if !isLayer(key.Value) {
			if i == 0 && slices.ContainsFunc(root.Content, func(n *yaml.Node) bool { return n.Value == "policy" }) {
				layers["default"] = whole
				return nil
			}
			return whole.fault(key, "%.60q is not a layer; layers are default, group.NAME and node.NAME", key.Value)
		}
		if _, twice := layers[key.Value]; twice {
			return whole.fault(key, "layer %.60q is there twice; keep one", key.Value)
		}
		layers[key.Value] = layer{path, root.Content[i+1]}
	}
	return nil
}

// parse returns the document's root, or nil of an empty file.
func parse(path string) (*yaml.Node, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	return document.Content[0], nil
}
