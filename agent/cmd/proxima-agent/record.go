package main

import (
	"io"

	"proxima.io/agent/internal/topology"
)

var recordVerb = verb{"record", "write this machine's topology to a file that every verb reads with --root", runRecord}

func runRecord(args []string, out io.Writer) error {
	set := flags("record", "[--root DIR | --shape NUMBERS] > FILE",
		"Writes the files of /sys that the agent looks at, one line each, to standard output. Nothing else of the\nmachine is in it, so that it can be attached to a bug report.")
	var machine machineFlags
	machine.register(set)
	if err := parseFlags(set, args, out); err != nil {
		return err
	}
	tree, err := machine.tree()
	if err != nil {
		return err
	}
	recording, err := topology.Record(tree)
	if err != nil {
		return err
	}
	_, err = recording.WriteTo(out)
	return err
}
