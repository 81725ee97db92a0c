package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/manifest"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/topology"
)

// scene is what simulate and explain try a placement on: a machine, options, and the pods of manifests.
type scene struct {
	machineFlags
	config string
	where  whereFlags
	copies int

	machine *topology.Topology
	policy  *policy.Policy
	pods    []manifest.Pod
}

func (s *scene) register(set *flag.FlagSet) {
	s.machineFlags.register(set)
	set.StringVar(&s.config, "config", "", "configuration `file`, or directory of layers, as a node would have it")
	s.where.register(set)
	set.IntVar(&s.copies, "copies", 1, "how often the manifests are read, with $n in them replaced by 1, 2, …")
}

func (s *scene) load(files []string) error {
	var err error
	if s.machine, err = s.read(); err != nil {
		return err
	}
	options := config.Default()
	if s.config != "" {
		if options, err = config.Load(s.config, s.where.Where); err != nil {
			return err
		}
	}
	for _, note := range options.Notes {
		fmt.Fprintln(os.Stderr, "configuration:", note)
	}
	resolved, err := options.Resolve(s.machine, config.Had{})
	if err != nil {
		return err
	}
	s.policy = policy.New(s.machine, resolved)
	if len(files) == 0 {
		return errors.New("no manifests given")
	}
	var text bytes.Buffer
	for _, file := range files {
		if strings.HasPrefix(file, "-") {
			return fmt.Errorf("%s comes after a manifest; flags go first", file)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text.WriteString("\n---\n")
		text.Write(content)
	}
	if s.pods, err = manifest.Read(text.Bytes(), s.copies); err != nil {
		return err
	}
	if len(s.pods) == 0 {
		return errors.New("these manifests have no pods")
	}
	for _, p := range s.pods {
		for _, f := range p.Findings {
			fmt.Fprintf(os.Stderr, "pod %s: %s\n", p.Name, f)
		}
	}
	return nil
}
