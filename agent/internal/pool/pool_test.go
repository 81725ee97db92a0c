package pool

import (
	"strings"
	"testing"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/topology"
)

func build(t *testing.T, shape, available string) *Tree {
	t.Helper()
	s, err := topology.ParseShape(shape)
	if err != nil {
		t.Fatal(err)
	}
	m, err := topology.Read(s.Recording())
	if err != nil {
		t.Fatal(err)
	}
	cpus := m.Online
	if available != "" {
		if cpus, err = cpuset.Parse(available); err != nil {
			t.Fatal(err)
		}
	}
	return Build(m, cpus)
}

// outline writes the tree as nested names with memory: "root@0-1(socket0@0 socket1@1)".
func outline(t *Tree, id int) string {
	p := t.Pools[id]
	text := p.Name + "@" + p.Memory.String()
	if len(p.Children) == 0 {
		return text
	}
	var children []string
	for _, child := range p.Children {
		children = append(children, outline(t, child))
	}
	return text + "(" + strings.Join(children, " ") + ")"
}

func TestLevelsAreLeftOutWhereTheySayNothingNew(t *testing.T) {
	for _, c := range []struct{ name, shape, available, want string }{
		{"laptop", "cores=4,threads=2", "", "socket0@0"},
		{"two sockets", "sockets=2,cores=24,threads=2", "", "root@0-1(socket0@0 socket1@1)"},
		{"sub-NUMA clusters", "sockets=2,nodes=2,cores=4", "", "root@0-3(socket0@0-1(node0@0 node1@1) socket1@2-3(node2@2 node3@3))"},
		{"dies with one node each", "dies=2,cores=4", "", "socket0@0-1(node0@0 node1@1)"},
		{"dies with two nodes each", "dies=2,nodes=2,cores=2", "", "socket0@0-3(die0.0@0-1(node0@0 node1@1) die0.1@2-3(node2@2 node3@3))"},
		{"several caches", "caches=2,cores=4", "", "socket0@0(l3-0@0 l3-2@0)"},
		{"CPUs without memory", "sockets=2,nodes=2,cores=2,memoryless=1", "", "root@0,2-3(socket0@0(node0@0) socket1@2-3(node2@2 node3@3))"},
		{"a socket without memory", "sockets=2,cores=2,memoryless=1", "", "root@0(socket0@0 socket1@0)"},
		{"slow memory", "sockets=2,cores=2,memory-only=2", "", "root@0-3(socket0@0,2 socket1@1,3)"},
		{"some CPUs only", "sockets=2,nodes=2,cores=2", "0-3", "socket0@0-1(node0@0 node1@1)"},
		{"one socket's CPUs taken away", "sockets=2,cores=2", "0-1", "socket0@0"},
	} {
		tree := build(t, c.shape, c.available)
		if got := outline(tree, 0); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// Virtual machines often have one-CPU sockets, several in one NUMA node: the tree follows containment, not
// names.
func TestSocketsInsideANode(t *testing.T) {
	tree := topology.Recording{
		"sys/devices/system/cpu/online": "0-3", "sys/devices/system/node/online": "0-1",
		"sys/devices/system/node/node0/cpulist": "0-1", "sys/devices/system/node/node0/meminfo": "MemTotal: 8 kB",
		"sys/devices/system/node/node1/cpulist": "2-3", "sys/devices/system/node/node1/meminfo": "MemTotal: 8 kB",
	}
	for _, id := range []string{"0", "1", "2", "3"} {
		tree["sys/devices/system/cpu/cpu"+id+"/topology/physical_package_id"] = id
	}
	m, err := topology.Read(tree)
	if err != nil {
		t.Fatal(err)
	}
	want := "root@0-1(node0@0(socket0@0 socket1@0) node1@1(socket2@1 socket3@1))"
	if got := outline(Build(m, m.Online), 0); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCommonAndSmallest(t *testing.T) {
	tree := build(t, "sockets=2,nodes=2,cores=2", "")
	id := func(name string) int { return tree.Named(name).ID }
	for _, c := range []struct{ a, b, want string }{
		{"node0", "node1", "socket0"}, {"node0", "node3", "root"}, {"socket1", "node3", "socket1"}, {"node2", "node2", "node2"},
	} {
		if got := tree.Common(id(c.a), id(c.b)).Name; got != c.want {
			t.Errorf("common of %s and %s: %s, want %s", c.a, c.b, got, c.want)
		}
	}
	if got := tree.Smallest(cpuset.Of(0, 2)).Name; got != "socket0" {
		t.Errorf("smallest of 0,2: %s", got)
	}
	if !tree.Holds(id("socket0"), id("node1")) || tree.Holds(id("node1"), id("socket0")) {
		t.Error("a socket holds its node, and not the other way round")
	}
}
