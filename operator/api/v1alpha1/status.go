package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SmartUpdateStatus is what was last seen, and what has to be remembered from one turn to the next.
type SmartUpdateStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Ready, Reconciling, Stalled, BackupRunning and UpdateAvailable.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Writer is the pod that takes writes, as all proxies say.
	//
	// +optional
	Writer string `json:"writer,omitempty"`

	// Members are the pods of the set.
	//
	// +optional
	// +listType=map
	// +listMapKey=pod
	Members []Member `json:"members,omitempty"`

	// Step is what is done or waited for.
	//
	// +optional
	Step *Step `json:"step,omitempty"`

	// Versions are the server's.
	//
	// +optional
	Versions *Versions `json:"versions,omitempty"`

	// Roll is the roll that is under way.
	//
	// +optional
	Roll *Roll `json:"roll,omitempty"`

	// LastRoll is the last roll that has ended.
	//
	// +optional
	LastRoll *LastRoll `json:"lastRoll,omitempty"`
}

// Member is a pod of the set.
type Member struct {
	Pod string `json:"pod"`
	// Role is writer, reader, out, or mixed where proxies differ.
	//
	// +optional
	Role string `json:"role,omitempty"`
	// Revision is the pod's controller-revision-hash.
	//
	// +optional
	Revision string `json:"revision,omitempty"`
	// Online counts the proxies in which it is online, as 3/3.
	Online string `json:"online"`
}

// Step is one step of a roll.
type Step struct {
	Name string `json:"name"`
	// +optional
	Pod string `json:"pod,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// Since is when this step began.
	Since metav1.Time `json:"since"`
}

// Versions are the server's: what runs, what is wanted, what there is.
type Versions struct {
	// Running is the version that the writer tells the proxies.
	//
	// +optional
	Running string `json:"running,omitempty"`
	// Wanted is the version whose image was set.
	//
	// +optional
	Wanted string `json:"wanted,omitempty"`
	// Image is the image that was set for it.
	//
	// +optional
	Image string `json:"image,omitempty"`
	// Available is the version that the last check has found.
	//
	// +optional
	Available string `json:"available,omitempty"`
	// Apply is what apply was at the last check.
	//
	// +optional
	Apply string `json:"apply,omitempty"`
	// +optional
	LastCheck *metav1.Time `json:"lastCheck,omitempty"`
	// +optional
	NextCheck *metav1.Time `json:"nextCheck,omitempty"`
}

// Roll is a roll that is under way.
type Roll struct {
	Began metav1.Time `json:"began"`
	// Revision is the one to which pods are replaced.
	Revision string `json:"revision"`
	// Writer is who takes writes by the proxies' own rule, and will take them at the roll's end.
	//
	// +optional
	Writer string `json:"writer,omitempty"`
	// LongestHoldMS is the longest time for which writes have waited.
	//
	// +optional
	LongestHoldMS int64 `json:"longestHoldMs,omitempty"`
	// Moves are the failed attempts to move the writer since it last moved.
	//
	// +optional
	Moves *Moves `json:"moves,omitempty"`
}

// Moves are failed attempts to move the writer.
type Moves struct {
	Failed int32 `json:"failed"`
	// Next is when it is tried again.
	Next   metav1.Time `json:"next"`
	Reason string      `json:"reason"`
	// +optional
	Message string `json:"message,omitempty"`
}

// LastRoll is a roll that has ended.
type LastRoll struct {
	Began    metav1.Time `json:"began"`
	Ended    metav1.Time `json:"ended"`
	Revision string      `json:"revision"`
	// +optional
	LongestHoldMS int64 `json:"longestHoldMs,omitempty"`
}
