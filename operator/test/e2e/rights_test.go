package e2e

import (
	"testing"

	authorization "k8s.io/api/authorization/v1"
)

// What the operator must not be able to do, whatever it is told.
func TestTheOperatorsRightsAreNoMoreThanItNeeds(t *testing.T) {
	c := begin(t)
	user := "operator-of-" + c.namespace
	asked := func(verb, group, resource, subresource, namespace string) bool {
		review := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorization.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: subresource,
			},
		}}
		c.make(review)
		return review.Status.Allowed
	}
	for _, row := range []struct{ verb, group, resource, subresource string }{
		{"get", "", "secrets", ""}, {"list", "", "secrets", ""}, {"watch", "", "secrets", ""},
		{"get", "", "configmaps", ""}, {"create", "", "pods", "exec"}, {"get", "", "pods", "log"},
		{"create", "", "pods", "portforward"}, {"delete", "", "pods", ""}, {"create", "", "pods", ""},
		{"patch", "", "pods", ""}, {"deletecollection", "", "pods", ""}, {"update", "apps", "statefulsets", ""},
		{"patch", "apps", "statefulsets", ""}, {"delete", "apps", "statefulsets", ""},
		{"update", "apps", "statefulsets", "scale"}, {"delete", "proxima.io", "smartupdates", ""},
		{"update", "proxima.io", "smartupdates", ""}, {"create", "batch", "jobs", ""},
		{"delete", "batch", "jobs", ""},
		{"patch", "policy", "poddisruptionbudgets", ""}, {"delete", "coordination.k8s.io", "leases", ""},
		{"list", "", "nodes", ""}, {"patch", "", "nodes", ""},
		{"create", "rbac.authorization.k8s.io", "rolebindings", ""},
		{"delete", "", "persistentvolumeclaims", ""}, {"create", "", "serviceaccounts", "token"},
		{"impersonate", "", "users", ""},
	} {
		if asked(row.verb, row.group, row.resource, row.subresource, c.namespace) {
			t.Errorf("it may %s %s/%s %s", row.verb, row.group, row.resource, row.subresource)
		}
	}
	for _, other := range []string{"default", ""} {
		if asked("list", "", "pods", "", other) || asked("create", "", "pods", "eviction", other) {
			t.Errorf("it has rights in namespace %q", other)
		}
	}
	if !asked("create", "", "pods", "eviction", c.namespace) {
		t.Error("it may not evict")
	}
}
