// Package policy decides what a roll does next. It is a function from what is observed to one act: it reads
// no clock, asks nobody, and remembers nothing but what stands in the object's status.
package policy

import (
	"time"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/proxies"
)

// Observation is all that a decision depends on.
type Observation struct {
	Now time.Time
	// Started is when this process began, by the same clock. Where clocks of two processes differ, what the
	// status says of an earlier process is no reason to end sessions.
	Started    time.Time
	Generation int64
	Spec       v1alpha1.SmartUpdateSpec
	Status     v1alpha1.SmartUpdateStatus
	// Older is the SmartUpdate that acts for the same set; empty: this one.
	Older string
	// Set is nil where there is none.
	Set  *Set
	Pods []Pod
	// Backups are those that run.
	Backups []Backup
	// BackupsUnknown is why backups could not be listed; empty: they could.
	BackupsUnknown string
	Proxies        []Proxy
	// Refused is who refused the last act; nil: nobody did.
	Refused *Refusal
}

// Refusal is a refused act. A disruption budget lets an eviction pass later. A proxy's word needs a person.
type Refusal struct {
	Text     string
	ByBudget bool
}

// Set is the StatefulSet.
type Set struct {
	UID            string
	Replicas       int
	FirstOrdinal   int
	OnDelete       bool
	Deleted        bool
	Observed       bool
	UpdateRevision string
}

// Pod is a pod of the set.
type Pod struct {
	Name     string
	UID      string
	Ordinal  int
	Revision string
	Ready    bool
	// Terminating pods were deleted and have not ended.
	Terminating bool
	// Failure is why the pod cannot run, in its own words; empty: nothing is known against it.
	Failure string
	// Unschedulable is since when no node takes the pod; zero: it has one.
	Unschedulable time.Time
}

// Backup is a backup that runs.
type Backup struct {
	Name  string
	Since time.Time
}

// Proxy is one endpoint of the proxies' Service.
type Proxy struct {
	Pod   string
	Ready bool
	// Answer is nil where the proxy has not answered, and Err says why.
	Answer *proxies.Answer
	Err    *proxies.Error
}
