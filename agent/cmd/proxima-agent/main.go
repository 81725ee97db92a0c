// Command proxima-agent places containers on the CPUs and memory of one Kubernetes node, so that a server and
// its client share a NUMA node. Each verb has a file of its own beside this one.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// verb is one subcommand. run gets the arguments after the verb's name.
type verb struct {
	name, summary string
	run           func(args []string, out io.Writer) error
}

func verbs() []verb {
	return []verb{runVerb, statusVerb, explainVerb, simulateVerb, topologyVerb, recordVerb, installVerb, releaseVerb, versionVerb}
}

func main() {
	if err := dispatch(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "proxima-agent:", err)
		os.Exit(1)
	}
}

func dispatch(args []string, out io.Writer) error {
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "--help"}, args[0]) {
		usage(out)
		return nil
	}
	for _, v := range verbs() {
		if v.name == args[0] {
			return v.run(args[1:], out)
		}
	}
	return fmt.Errorf("unknown verb %q; proxima-agent help lists them", args[0])
}

func usage(out io.Writer) {
	fmt.Fprintln(out, "proxima-agent places containers on the CPUs and memory of this node.\n\nVerbs (each knows --help):")
	for _, v := range verbs() {
		fmt.Fprintf(out, "  %-10s %s\n", v.name, v.summary)
	}
}

// flags returns an empty flag set whose help begins with what the verb does.
func flags(name, synopsis, about string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard) // main says what is wrong
	set.Usage = func() {
		fmt.Fprintf(set.Output(), "proxima-agent %s\n\n%s\n\n", strings.TrimSpace(name+" "+synopsis), about)
		set.PrintDefaults()
	}
	return set
}

// parse parses what follows a verb, and writes its help if that is asked for.
func parse(set *flag.FlagSet, args []string, out io.Writer) error {
	err := set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		set.SetOutput(out)
		set.Usage()
		return err
	}
	if err != nil {
		return fmt.Errorf("%w; proxima-agent %s --help lists the flags", err, set.Name())
	}
	return nil
}

// parseFlags is parse for verbs that take flags only.
func parseFlags(set *flag.FlagSet, args []string, out io.Writer) error {
	if err := parse(set, args, out); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("%s takes flags only, not %q; see proxima-agent %s --help", set.Name(), set.Arg(0), set.Name())
	}
	return nil
}
