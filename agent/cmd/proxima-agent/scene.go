package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/manifest"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/topology"
)

// scene is what simulate and explain try a placement on: a machine, options, and the pods of manifests.
type scene struct {
	machineFlags
	reserved, available string
	newcomerOnly        bool
	copies              int

	machine *topology.Topology
	policy  *policy.Policy
	pods    []manifest.Pod
}

func (s *scene) register(set *flag.FlagSet) {
	s.machineFlags.register(set)
	set.StringVar(&s.reserved, "reserved", "", "`CPUs` for the system's own containers, such as 0-1")
	set.StringVar(&s.available, "available", "", "`CPUs` that containers may have (default all)")
	set.BoolVar(&s.newcomerOnly, "newcomer-affinity-only", false, "CRI-RM's rule: only what the newcomer wrote counts")
	set.IntVar(&s.copies, "copies", 1, "how often the manifests are read, with $n in them replaced by 1, 2, …")
}

func (s *scene) load(files []string) error {
	var err error
	if s.machine, err = s.read(); err != nil {
		return err
	}
	options := policy.Options{PinCPU: true, PinMemory: true, NewcomerAffinityOnly: s.newcomerOnly}
	if options.Reserved, err = cpuset.Parse(s.reserved); err != nil {
		return err
	}
	if options.Available, err = cpuset.Parse(s.available); err != nil {
		return err
	}
	s.policy = policy.New(s.machine, options)
	if len(files) == 0 {
		return errors.New("no manifests given")
	}
	var text bytes.Buffer
	for _, file := range files {
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
