package main

import (
	"fmt"
	"io"
	"runtime"
)

// version is set by the linker, from agent/VERSION.
var version = "unreleased"

var versionVerb = verb{"version", "which agent this is", runVersion}

func runVersion(args []string, out io.Writer) error {
	if err := parseFlags(flags("version", "", "Prints the agent's version, and for which processor it was built."), args, out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "proxima-agent %s %s\n", version, runtime.GOARCH)
	return err
}
