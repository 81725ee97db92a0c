// Package v1alpha1 has the one kind of this operator, SmartUpdate.
//
// +kubebuilder:object:generate=true
// +groupName=proxima.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and the version of SmartUpdate.
var GroupVersion = schema.GroupVersion{Group: "proxima.io", Version: "v1alpha1"}

// AddToScheme makes the kind known to a client.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &SmartUpdate{}, &SmartUpdateList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
