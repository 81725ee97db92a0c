package manifest

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
)

// role is one pod to be made of an object.
type role struct {
	of   *object
	meta metadata
	spec podSpec
}

// identity is what a cluster tells two objects apart by. Pods have the empty kind in it.
type identity struct{ kind, namespace, name string }

// cast is all pods to be made, in the order of the manifests.
type cast struct {
	roles []role
	known map[identity]*object
	// next is the number that the next object gets whose name begins so.
	next map[identity]int
}

// add adds the pods of the object, and of those in its list.
func (c *cast) add(o *object) error {
	for i := range o.Items {
		if err := c.add(&o.Items[i]); err != nil {
			return err
		}
	}
	meta, spec, replicas := o.Metadata, o.Spec.podSpec, 1
	job := &o.Spec.jobSpec
	if job.Template == nil {
		job = &o.Spec.JobTemplate.Spec
	}
	if t := job.Template; t != nil {
		meta, spec, replicas = t.Metadata, t.Spec, job.atOnce()
		meta.Namespace = cmp.Or(o.Metadata.Namespace, meta.Namespace)
		if o.Spec.Replicas != nil {
			replicas = *o.Spec.Replicas
		}
	}
	if len(spec.Containers) == 0 {
		return nil
	}
	meta.Namespace = cmp.Or(meta.Namespace, "default")
	if is, err := c.isKnown(o, meta.Namespace); is || err != nil {
		return err
	}
	if replicas > maxPods-len(c.roles) {
		return fmt.Errorf("%s %s: more than %d pods", o.Kind, o.Metadata.Name, maxPods)
	}
	meta.Name = o.Metadata.Name
	for i := range replicas {
		own := meta
		if job.Template != nil {
			own.Name = fmt.Sprintf("%s-%d", meta.Name, i)
		}
		c.roles = append(c.roles, role{o, own, spec})
	}
	return nil
}

// isKnown gives the object a name if it has none, as the API server does, and otherwise tells whether it is
// one that has been read before: a part of a manifest without $n is the same object in each copy. Two objects
// of one kind cannot have one name.
func (c *cast) isKnown(o *object, namespace string) (bool, error) {
	if c.known == nil {
		c.known, c.next = map[identity]*object{}, map[identity]int{}
	}
	own := identity{o.Kind, namespace, o.Metadata.Name}
	if own.name == "" {
		prefix := cmp.Or(o.Metadata.GenerateName, strings.ToLower(cmp.Or(o.Kind, "pod"))+"-")
		for own.name == "" || c.known[own] != nil {
			begins := identity{o.Kind, namespace, prefix}
			own.name = fmt.Sprint(prefix, c.next[begins])
			c.next[begins]++
		}
		o.Metadata.Name = own.name
	} else if before := c.known[own]; before != nil {
		if reflect.DeepEqual(before, o) {
			return true, nil
		}
		return false, fmt.Errorf("%s %s is there twice in the namespace %s: give one of them another name, or take it out",
			o.Kind, own.name, namespace)
	}
	c.known[own] = o
	return false, nil
}

// name gives each pod a name of its own. Those whose names are certain in a cluster keep them: pods, and those
// of StatefulSets. What another controller calls its pods there ends in letters drawn by chance, and here in a
// number, which may be taken.
func (c *cast) name() {
	taken := map[identity]bool{}
	for _, kind := range []string{"Pod", "StatefulSet", ""} {
		for i := range c.roles {
			r := &c.roles[i]
			if of := r.of.Kind; of != kind && (kind != "" || of == "Pod" || of == "StatefulSet") {
				continue
			}
			own := identity{"", r.meta.Namespace, r.meta.Name}
			for taken[own] {
				own.name += "." + strings.ToLower(r.of.Kind)
			}
			taken[own] = true
			r.meta.Name = own.name
		}
	}
}
