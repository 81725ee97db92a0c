package proxies

import (
	"cmp"
	"net"
	"slices"
	"strconv"

	discovery "k8s.io/api/discovery/v1"
)

// PortName is the name of the admin port in the Service.
const PortName = "admin"

// Endpoint is the admin port of one proxy.
type Endpoint struct {
	// Pod is the proxy's pod, or its address where the endpoint names none.
	Pod string
	// Address is host:port.
	Address string
	// Ready: clients reach it.
	Ready bool
}

// Endpoints returns those of a Service's slices, sorted by pod. One that stands in two slices for a moment
// is returned once, ready if one of them says so.
//
// A Service that publishes addresses that are not ready calls every endpoint ready, so that serving and
// terminating are looked at as well.
func Endpoints(slicesOfService []discovery.EndpointSlice) []Endpoint {
	found := map[string]Endpoint{}
	for _, slice := range slicesOfService {
		port := ""
		for _, p := range slice.Ports {
			if p.Name != nil && *p.Name == PortName && p.Port != nil {
				port = strconv.Itoa(int(*p.Port))
			}
		}
		if port == "" {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if len(endpoint.Addresses) == 0 {
				continue
			}
			address := net.JoinHostPort(endpoint.Addresses[0], port)
			name := address
			if endpoint.TargetRef != nil && endpoint.TargetRef.Name != "" {
				name = endpoint.TargetRef.Name
			}
			is := endpoint.Conditions
			ready := isTrue(is.Ready, true) && isTrue(is.Serving, true) && !isTrue(is.Terminating, false)
			found[address] = Endpoint{Pod: name, Address: address, Ready: ready || found[address].Ready}
		}
	}
	endpoints := make([]Endpoint, 0, len(found))
	for _, endpoint := range found {
		endpoints = append(endpoints, endpoint)
	}
	slices.SortFunc(endpoints, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Address, b.Address))
	})
	return endpoints
}

func isTrue(value *bool, otherwise bool) bool {
	if value == nil {
		return otherwise
	}
	return *value
}
