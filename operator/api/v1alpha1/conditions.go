package v1alpha1

// Types of conditions. The first three are kstatus'.
const (
	Ready           = "Ready"
	Reconciling     = "Reconciling"
	Stalled         = "Stalled"
	BackupRunning   = "BackupRunning"
	UpdateAvailable = "UpdateAvailable"
)
