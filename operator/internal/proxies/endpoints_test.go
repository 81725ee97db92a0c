package proxies

import (
	"slices"
	"testing"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
)

func TestEndpointsAreThoseOfThePortNamedAdmin(t *testing.T) {
	yes, no := true, false
	port := func(name string, number int32) []discovery.EndpointPort {
		return []discovery.EndpointPort{{Name: &name, Port: &number}}
	}
	endpoint := func(address, pod string, ready, serving, terminating *bool) discovery.Endpoint {
		made := discovery.Endpoint{
			Addresses:  []string{address},
			Conditions: discovery.EndpointConditions{Ready: ready, Serving: serving, Terminating: terminating},
		}
		if pod != "" {
			made.TargetRef = &core.ObjectReference{Kind: "Pod", Name: pod}
		}
		return made
	}
	got := Endpoints([]discovery.EndpointSlice{
		{Ports: port("admin", 9150), Endpoints: []discovery.Endpoint{
			endpoint("10.0.0.3", "c", &no, &no, nil),
			endpoint("10.0.0.1", "a", nil, nil, nil),
			endpoint("10.0.0.2", "b", &yes, &yes, &yes),
			endpoint("10.0.0.4", "", &yes, nil, nil),
			{},
		}},
		{Ports: port("admin", 9150), Endpoints: []discovery.Endpoint{endpoint("10.0.0.3", "c", &yes, nil, nil)}},
		{Ports: port("admin", 9151), Endpoints: []discovery.Endpoint{endpoint("fd00::1", "d", &yes, &no, nil)}},
		{Ports: port("mysql", 3306), Endpoints: []discovery.Endpoint{endpoint("10.0.0.9", "e", &yes, nil, nil)}},
	})
	want := []Endpoint{
		{"10.0.0.4:9150", "10.0.0.4:9150", true}, {"a", "10.0.0.1:9150", true}, {"b", "10.0.0.2:9150", false},
		{"c", "10.0.0.3:9150", true}, {"d", "[fd00::1]:9151", false},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v\nnot\n%+v", got, want)
	}
}
