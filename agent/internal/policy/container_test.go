package policy

import (
	"strings"
	"testing"

	"proxima.io/agent/internal/annotation"
	"proxima.io/agent/internal/cpuset"
)

// What is asked for and cannot be had on any machine is said; what can be had is not.
func TestNotes(t *testing.T) {
	reserving := pinned
	reserving.Reserved = cpuset.Of(0)
	none, some := New(shaped(t, "cores=8"), pinned), New(shaped(t, "cores=8"), reserving)
	for _, c := range []struct {
		policy    *Policy
		container Container
		wish      annotation.Preferences
		want      string
	}{
		{none, burstable("a", 500, 0), annotation.Preferences{Shared: annotation.No}, "Guaranteed pods"},
		{none, burstable("a", 500, 0), annotation.Preferences{HideThreads: annotation.Yes}, "one thread of each core"},
		{none, guaranteed("a", 2000), annotation.Preferences{HideThreads: annotation.Yes}, ""},
		{none, guaranteed("a", 500), annotation.Preferences{Priority: "low"}, "kind of core"},
		{none, guaranteed("a", 2000), annotation.Preferences{Priority: "low"}, ""},
		{none, guaranteed("a", 2000), annotation.Preferences{Reserved: annotation.Yes}, "reserves none"},
		{some, guaranteed("a", 2000), annotation.Preferences{Reserved: annotation.Yes}, ""},
		{none, burstable("a", 500, 0), annotation.Preferences{}, ""},
	} {
		c.container.Preferences = c.wish
		if note := c.policy.Note(&c.container); !strings.Contains(note, c.want) || (c.want == "") != (note == "") {
			t.Errorf("%s of %d with %+v: %q, want %q", c.container.QOS, c.container.Request, c.wish, note, c.want)
		}
	}
}
