package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"proxima.io/agent/internal/policy"
)

// where is what is told of the pods, as text.
func where(e *Engine) string {
	_, pods := e.Where()
	var all []string
	for _, p := range pods {
		for _, c := range p.Containers {
			all = append(all, fmt.Sprint(p.Namespace, "/", p.Name, " ", p.IPs, " ", c.ID, " ", c.Nodes))
		}
	}
	return strings.Join(all, "; ")
}

func TestContainersAreToldWithTheirCPUsAndThoseThatAreTheirsAlone(t *testing.T) {
	e, _ := start(t, "sockets=2,nodes=1,cores=4", Settings{})
	roams := arrival("roams", "BestEffort", 0)
	roams.Annotations = map[string]string{"proxima.io/cpus": "unpinned"}
	e.Create(arrival("own", policy.Guaranteed, 2000))
	e.Create(arrival("shares", "Burstable", 500))
	e.Create(roams)
	_, pods := e.Where()
	told := map[string][2]string{}
	for _, p := range pods {
		told[p.Name] = [2]string{p.Containers[0].CPUs, p.Containers[0].Own}
	}
	for _, seat := range e.Status().Seats {
		cpus, own := seat.Pin.CPUs, seat.Place.Exclusive
		if seat.ID == "roams" {
			cpus = e.machine.Online
		}
		if want := [2]string{cpus.String(), own.String()}; told[seat.ID] != want {
			t.Errorf("%s: %q, want %q", seat.ID, told[seat.ID], want)
		}
	}
	if told["own"][1] == "" || told["shares"][1] != "" || told["roams"][1] != "" {
		t.Errorf("who has CPUs alone: %q", told)
	}
}

func TestPodsAreToldWithTheirAddressesAndNodes(t *testing.T) {
	e, _ := start(t, "sockets=2,nodes=2,cores=4", Settings{})
	changed := func(what string, step func()) {
		t.Helper()
		wait := e.Changed()
		step()
		select {
		case <-wait:
		default:
			t.Errorf("%s: nobody is told of it", what)
		}
	}
	own, roams, host := arrival("own", policy.Guaranteed, 2000), arrival("roams", "BestEffort", 0), arrival("host", policy.Guaranteed, 3000)
	roams.Annotations = map[string]string{"proxima.io/cpus": "unpinned"}
	own.Addresses, own.AddressesTold = []string{"10.0.0.1", "fd00::1"}, true
	host.AddressesTold = true
	changed("a pod comes", func() { e.Create(own) })
	e.Create(roams)
	e.Create(host)
	at := e.Status()
	node := func(id string) int {
		i := slices.IndexFunc(at.Seats, func(s Seat) bool { return s.ID == id })
		return at.Seats[i].Nodes[0]
	}
	want := fmt.Sprintf("default/host [] host [%d]; default/own [10.0.0.1 fd00::1] own [%d]; default/roams [] roams [0 1 2 3]", node("host"), node("own"))
	if got := where(e); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if pods := e.Unaddressed(); !slices.Equal(pods, []string{"pod-roams"}) {
		t.Errorf("addresses are to be asked for: %v", pods)
	}
	changed("addresses are told", func() { e.SetAddresses("pod-roams", []string{"10.0.0.3"}) })
	e.SetAddresses("pod-of-nobody", []string{"10.0.0.9"})
	if got := where(e); !strings.Contains(got, "roams [10.0.0.3]") || len(e.Unaddressed()) != 0 || len(e.addresses) != 3 {
		t.Errorf("%s; %v", got, e.addresses)
	}
	changed("a pod goes", func() { e.Stop("own"); e.DropPod("pod-own") })
	if got := where(e); strings.Contains(got, "own") || len(e.addresses) != 2 {
		t.Errorf("%s; %v", got, e.addresses)
	}
	// A runtime that is connected again tells who is there; the addresses of those who are not are forgotten.
	e.Synchronize([]Arrival{roams}, map[string][]string{"pod-roams": {"roams"}})
	if got := where(e); !strings.HasPrefix(got, "default/roams [10.0.0.3]") || len(e.addresses) != 1 {
		t.Errorf("%s; %v", got, e.addresses)
	}
}
