package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SmartUpdate rolls the pods of a StatefulSet one by one, together with the proxies before them, so that no
// client sees an error.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=smartupdates,singular=smartupdate,shortName=su
// +kubebuilder:printcolumn:name=Version,type=string,JSONPath=.status.versions.running
// +kubebuilder:printcolumn:name=Writer,type=string,JSONPath=.status.writer
// +kubebuilder:printcolumn:name=Step,type=string,JSONPath=.status.step.name
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=.status.conditions[?(@.type=="Ready")].status
// +kubebuilder:printcolumn:name=Reason,type=string,priority=1,JSONPath=.status.conditions[?(@.type=="Ready")].reason
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name: at most 63 characters"
type SmartUpdate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec SmartUpdateSpec `json:"spec"`
	// +optional
	Status SmartUpdateStatus `json:"status,omitzero"`
}

// SmartUpdateList is a list of them.
//
// +kubebuilder:object:root=true
type SmartUpdateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SmartUpdate `json:"items"`
}
