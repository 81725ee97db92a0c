// proxima-operator rolls StatefulSets together with the proxies before them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if arguments := os.Args[1:]; len(arguments) > 0 && arguments[0] == "versions" {
		err = serveVersions(ctx, arguments[1:], os.Stderr)
	} else {
		err = operate(ctx, arguments, os.Stderr)
	}
	if err != nil && err != flag.ErrHelp {
		fmt.Fprintln(os.Stderr, "proxima-operator:", err)
		os.Exit(1)
	}
}
