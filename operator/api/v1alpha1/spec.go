package v1alpha1

// SmartUpdateSpec says which set is rolled, and by which rules.
//
// +kubebuilder:validation:XValidation:rule="!has(self.upgradeOptions) || has(self.image)",message="upgradeOptions need image.container: which container runs the server"
type SmartUpdateSpec struct {
	// StatefulSet is the name of the set, in the namespace of this object. Its update strategy must be
	// OnDelete.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="not a StatefulSet's name: lower-case letters, digits, '-' and '.'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="statefulSet cannot be changed: delete this object and make another one"
	StatefulSet string `json:"statefulSet"`

	// Proxies are the proxies through which clients reach the set.
	//
	// +required
	Proxies Proxies `json:"proxies"`

	// Image says which image is the server's, and where it is set.
	//
	// +optional
	Image *Image `json:"image,omitempty"`

	// UpgradeOptions say which version is wanted. Without them no version is asked for.
	//
	// +optional
	UpgradeOptions *UpgradeOptions `json:"upgradeOptions,omitempty"`

	// Backups are the backups during which no pod is evicted.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Backups []Backup `json:"backups,omitempty"`

	// Limits bound how long a step of a roll may take.
	//
	// +optional
	// +kubebuilder:default={}
	Limits Limits `json:"limits,omitzero"`

	// AllowSmall lets a set of two replicas be rolled, of which one stays while the other is replaced.
	//
	// +optional
	AllowSmall bool `json:"allowSmall,omitempty"`

	// Paused stops the operator before its next act, which is still shown in the status.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// Proxies are the ready endpoints of a Service, and the pool whose members are the pods of the set.
type Proxies struct {
	// Service has a port `admin`: the proxies' admin port.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1035Label().validate(self).hasValue()",message="not a Service's name: lower-case letters, digits and '-', with a letter first"
	Service string `json:"service"`

	// Pool is the pool's name in the proxies' configuration.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9_.-]*$')",message="not a pool's name: letters, digits, '-', '_' and '.'"
	Pool string `json:"pool"`
}

// Image is a container of the set, and the field that decides its image.
type Image struct {
	// Container is the server's container in the set's pods.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="not a container's name: lower-case letters, digits and '-'"
	Container string `json:"container"`

	// In is the object whose field decides the image. Without it that is the StatefulSet.
	//
	// +optional
	In *ImageField `json:"in,omitempty"`
}

// ImageField is one field of another operator's object.
type ImageField struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?/v[0-9]+((alpha|beta)[0-9]+)?$')",message="not a group and a version, as pxc.percona.com/v1"
	APIVersion string `json:"apiVersion"`
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="not a kind, as PerconaXtraDBCluster"
	Kind string `json:"kind"`
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="not an object's name: lower-case letters, digits, '-' and '.'"
	Name string `json:"name"`
	// Path leads to a text, as /spec/pxc/image. It does not lead through lists.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^/spec(/[a-z][A-Za-z0-9]*)*/([a-z][A-Za-z0-9]*I|i)mage$')",message="not a path that leads to an image: it begins with /spec/, ends with image, and has no index of a list, as /spec/pxc/image"
	Path string `json:"path"`
}

// UpgradeOptions are Percona's upgradeOptions, and what its operator has elsewhere.
//
// +kubebuilder:validation:XValidation:rule="self.apply in ['disabled', 'never'] || (has(self.schedule) && has(self.versionServiceEndpoint) && has(self.product) && has(self.operatorVersion) && has(self.component))",message="a check needs schedule, versionServiceEndpoint, product, operatorVersion and component, unless apply is disabled or never"
type UpgradeOptions struct {
	// Apply is disabled, never, recommended, latest, one of these two of a series (8.0-recommended), or a
	// version.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^(disabled|never|recommended|latest|[0-9]+[.][0-9]+-(recommended|latest)|[0-9]+[.][0-9]+[.][0-9]+([-+.][0-9A-Za-z.-]+)?)$')",message="apply is disabled, never, recommended, latest, 8.0-recommended, 8.0-latest, or a version, as 8.0.42-33.1"
	Apply string `json:"apply"`

	// Schedule is cron's five fields.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^ ]+( [^ ]+){4}$')",message="schedule has five fields with one space between: minute, hour, day of the month, month, day of the week"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^ ]+( [^ ]+){4}$') || self.split(' ')[0].matches('^([*]|[0-5]?[0-9](-[0-5]?[0-9])?)(/[1-9][0-9]?)?(,([*]|[0-5]?[0-9](-[0-5]?[0-9])?)(/[1-9][0-9]?)?)*$')",message="schedule's first field, the minute: 0 to 59, *, ranges, steps and lists of them"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^ ]+( [^ ]+){4}$') || self.split(' ')[1].matches('^([*]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[1-9][0-9]?)?(,([*]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[1-9][0-9]?)?)*$')",message="schedule's second field, the hour: 0 to 23, *, ranges, steps and lists of them"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^ ]+( [^ ]+){4}$') || self.split(' ')[2].matches('^([*]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[1-9][0-9]?)?(,([*]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[1-9][0-9]?)?)*$')",message="schedule's third field, the day of the month: 1 to 31, *, ranges, steps and lists of them"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^ ]+( [^ ]+){4}$') || self.split(' ')[3].matches('^(?i)([*]|(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(-(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?)(/[1-9][0-9]?)?(,([*]|(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(-(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?)(/[1-9][0-9]?)?)*$')",message="schedule's fourth field, the month: 1 to 12 or jan to dec, *, ranges, steps and lists of them"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^ ]+( [^ ]+){4}$') || self.split(' ')[4].matches('^(?i)([*]|([0-6]|sun|mon|tue|wed|thu|fri|sat)(-([0-6]|sun|mon|tue|wed|thu|fri|sat))?)(/[1-9])?(,([*]|([0-6]|sun|mon|tue|wed|thu|fri|sat)(-([0-6]|sun|mon|tue|wed|thu|fri|sat))?)(/[1-9])?)*$')",message="schedule's fifth field, the day of the week: 0 to 6 or sun to sat, *, ranges, steps and lists of them"
	Schedule string `json:"schedule,omitempty"`

	// TimeZone is the schedule's, as Europe/Berlin.
	//
	// +optional
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*)*$')",message="not a time zone's name, as Etc/UTC or Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`

	// Window is how late a check may be that could not be made in time. A later one is left to the next time.
	//
	// +optional
	// +kubebuilder:default="2h"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="window is a duration of 1m to 24h"
	Window Duration `json:"window,omitempty"`

	// VersionServiceEndpoint is a server of Percona's version API.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="versionServiceEndpoint is a URL, as http://versions.proxima:11000"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[?#@]')",message="versionServiceEndpoint has no query, no fragment and no account"
	VersionServiceEndpoint string `json:"versionServiceEndpoint,omitempty"`

	// Product is the product's name there, as pxc-operator.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9-]*$')",message="not a product's name, as pxc-operator"
	Product string `json:"product,omitempty"`

	// OperatorVersion is the version under which the product has its list there, as 1.18.0.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+([.][0-9]+)*([-+][0-9A-Za-z.-]+)?$')",message="not a version, as 1.18.0"
	OperatorVersion string `json:"operatorVersion,omitempty"`

	// Component is the server's name in the list, as pxc.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][A-Za-z0-9-]*$')",message="not a component's name, as pxc"
	Component string `json:"component,omitempty"`

	// Report tells of a newer version by the condition UpdateAvailable, and sets no image.
	//
	// +optional
	Report bool `json:"report,omitempty"`
}

// Backup names backups in one of three forms.
//
// +kubebuilder:validation:XValidation:rule="[has(self.percona), has(self.mariadb), has(self.jobs)].filter(form, form).size() == 1",message="a backup has one form: percona, mariadb or jobs"
type Backup struct {
	// Percona is the name of a PerconaXtraDBCluster, whose PerconaXtraDBClusterBackups count.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="not a cluster's name: lower-case letters, digits, '-' and '.'"
	Percona string `json:"percona,omitempty"`

	// MariaDB is the name of a MariaDB, whose Backups and PhysicalBackups count.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="not a MariaDB's name: lower-case letters, digits, '-' and '.'"
	MariaDB string `json:"mariadb,omitempty"`

	// Jobs selects Jobs by their labels.
	//
	// +optional
	Jobs *JobSelector `json:"jobs,omitempty"`
}

// JobSelector selects Jobs.
type JobSelector struct {
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(key, !format.qualifiedName().validate(key).hasValue() && size(self[key]) <= 63 && !format.labelValue().validate(self[key]).hasValue())",message="not labels: a key or a value has a form that no label has"
	MatchLabels map[string]LabelValue `json:"matchLabels"`
}

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=253
type LabelValue string

// Limits bound the steps of a roll.
type Limits struct {
	// Drain is how long the sessions of a member may last that is to be evicted.
	//
	// +optional
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="limits.drain is a duration of 1s to 1h"
	Drain Duration `json:"drain,omitempty"`

	// Move is how long writes may wait while the writer moves. The proxies end a hold after 5 s at most.
	//
	// +optional
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) >= duration('100ms') && duration(self) <= duration('5s')",message="limits.move is a duration of 100ms to 5s, as proxies end a hold after 5s"
	Move Duration `json:"move,omitempty"`

	// Moves is how often a move of the writer is tried.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100",message="limits.moves is 1 to 100"
	Moves int32 `json:"moves,omitempty"`

	// Unschedulable is how long a pod may be without a node.
	//
	// +optional
	// +kubebuilder:default="120s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="limits.unschedulable is a duration of 1s to 1h"
	Unschedulable Duration `json:"unschedulable,omitempty"`

	// Pod is how long a new pod may take until it is online in all proxies.
	//
	// +optional
	// +kubebuilder:default="2h"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="limits.pod is a duration of 1m to 24h"
	Pod Duration `json:"pod,omitempty"`
}

// Order is the name under which the proxies keep the orders for this object.
func (u *SmartUpdate) Order() string {
	return u.Namespace + "-" + u.Name
}
