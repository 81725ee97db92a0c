package main

import (
	"flag"
	"os"

	"proxima.io/agent/internal/config"
)

// whereFlags say which layers of a configuration count.
type whereFlags struct{ config.Where }

func (w *whereFlags) register(set *flag.FlagSet) {
	set.StringVar(&w.Node, "node-name", os.Getenv("NODE_NAME"), "the node's `name`, for layer node.NAME (default $NODE_NAME)")
	set.StringVar(&w.Group, "group", os.Getenv("NODE_GROUP"), "the node's `group`, for layer group.NAME (default $NODE_GROUP)")
}
