// Package kube reads back from a container's Linux resources what its pod asked for. Neither NRI nor the CRI
// carries requests and quality of service; kubelet has turned them into shares, quotas and cgroup paths by
// then.
package kube

import (
	"cmp"
	"strings"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
)

// Resources are the fields of either door's message that matter. Zero is a field that was not given: runtimes
// pass on only what an update changes.
type Resources struct {
	Shares, Quota, Period int64
	MemoryLimit           int64
	OOMScoreAdj           int64
	CgroupParent          string
	CPUs, MemoryNodes     string // cpusets
}

// Seen is the pin that the resources have; a cpuset that cannot be read counts as none.
func (r Resources) Seen() policy.Pin {
	read := func(list string) cpuset.Set {
		set, err := cpuset.Parse(list)
		if err != nil {
			return cpuset.Set{}
		}
		return set
	}
	return policy.Pin{CPUs: read(r.CPUs), Memory: read(r.MemoryNodes)}
}

// period is kubelet's and the kernel's, where none is given with a quota.
const period = 100_000

// Fill sets what is given of a container's requests, limits and, as it never changes, its quality of service
// where none is known yet. capacity is the machine's memory in bytes.
func (r Resources) Fill(c *policy.Container, capacity int64) {
	if r.Quota != 0 { // below zero there is no limit
		c.Limit = int(max(0, r.Quota) * 1000 / cmp.Or(max(0, r.Period), period))
	}
	if r.Shares != 0 {
		// Kubelet writes milli × 1024 / 1000 shares, rounded down, and never less than 2.
		c.Request = 0
		if r.Shares > 2 {
			c.Request = int((r.Shares*1000 + 1023) / 1024)
		}
	}
	if c.QOS == "" {
		c.QOS = r.qos(c)
	}
	if c.QOS == policy.Guaranteed && c.Limit > 0 {
		c.Request = c.Limit // exact, where shares are rounded
	}
	if r.MemoryLimit != 0 {
		c.Memory = max(0, r.MemoryLimit)
	}
	c.NoMemoryLimit = c.Memory == 0 || (c.NoMemoryLimit && r.MemoryLimit == 0)
	if c.Memory == 0 && c.QOS == "Burstable" {
		c.Memory = r.memoryRequest(capacity)
	}
}

// qos reads the class off the cgroup path that kubelet chose; without kubelet's path it follows from the
// resources.
func (r Resources) qos(c *policy.Container) string {
	parent := strings.ToLower(r.CgroupParent)
	switch {
	case strings.Contains(parent, "besteffort"):
		return "BestEffort"
	case strings.Contains(parent, "burstable"):
		return "Burstable"
	case strings.Contains(parent, "kubepods"):
		return policy.Guaranteed
	case c.Limit > 0 && r.MemoryLimit > 0 && abs(c.Request-c.Limit) <= 1:
		return policy.Guaranteed
	case c.Limit == 0 && c.Request == 0 && r.MemoryLimit <= 0:
		return "BestEffort"
	}
	return "Burstable"
}

// memoryRequest estimates a burstable container's request from its OOM score, which kubelet sets to
// 1000 − 1000 × request / capacity: good to a thousandth of the machine.
func (r Resources) memoryRequest(capacity int64) int64 {
	if r.OOMScoreAdj < 3 || r.OOMScoreAdj > 998 { // 2 and 999 are bounds, not estimates
		return 0
	}
	return capacity / 1000 * (1000 - r.OOMScoreAdj)
}

func abs(n int) int { return max(n, -n) }
