// Package versions decides which version of the server is wanted.
//
// The controller calls Client.Next once in a turn of each SmartUpdate with upgradeOptions, while no roll is
// under way, and does what the Result says: it keeps Status in the object, applies Image (if any) to the one
// field that the object names, sets Condition, and tells an event when its reason has changed. The image
// comes first: a turn that set it and could not keep Status is repeated whole.
//
// It speaks the API of Percona's version service, which package server serves from a file. Nothing waits for
// an answer, no update goes backwards, and none goes to another major or minor number.
package versions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proxima.io/operator/api/v1alpha1"
)

// Request is all that the decision depends on, beside the clock.
type Request struct {
	Options v1alpha1.UpgradeOptions
	// Status is what the last Result said; the zero value before the first one.
	Status v1alpha1.Versions
	// Running are the versions that servers told the proxies, one for each member of the pool that has told
	// one (`11.8.3-MariaDB`). It is empty where no member has run yet.
	Running []string
	// Created is when the object was made: no time of the schedule before it counts.
	Created metav1.Time
	// Image is the image in the field now.
	Image string
	// Backup: a backup runs.
	Backup bool
	// Replicas are those of the set, so that fewer Running are told from all.
	Replicas int
}

// Result is the decision.
type Result struct {
	Status v1alpha1.Versions
	// Image is to be set; empty: nothing is changed.
	Image string
	// Condition is of type UpdateAvailable, without observedGeneration; nil: as it is.
	Condition *metav1.Condition
}
