package annotation

import (
	"slices"
	"strings"

	"proxima.io/agent/internal/spelling"
)

// unknownKeys reports every annotation of a dialect's domain, or of one that looks like it, that nothing has taken.
func (r *reader) unknownKeys() {
	for _, key := range sortedKeys(r.annotations) {
		if r.served[key] {
			continue
		}
		domain, name, hasName := strings.Cut(key, "/")
		base, preference, ours := split(domain)
		if !ours {
			if near := misspelt(domain); near != "" {
				r.found(Unknown, key, "unknown domain; did you mean %s?", near)
			}
			continue
		}
		if !hasName {
			name = ""
		}
		r.unknownKey(key, base, preference, name)
	}
}

// split takes "prefer-shared-cpus.resource-policy.nri.io" apart.
func split(domain string) (base, preference string, ours bool) {
	for _, base := range []string{ownDomain, nriDomain, criRMDomain} {
		if domain == base {
			return base, "", true
		}
		if preference, ok := strings.CutSuffix(domain, "."+base); ok {
			return base, preference, true
		}
	}
	return "", "", false
}

// misspelt returns the dialect's domain that one, or what follows a preference in it, nearly is: letters are wrong, or its
// end was forgotten (proxima/near).
func misspelt(domain string) string {
	bases := []string{ownDomain, nriDomain, criRMDomain}
	for tail, more := domain, true; more; _, tail, more = strings.Cut(tail, ".") {
		for _, base := range bases {
			if tail != "" && strings.HasPrefix(base, tail+".") {
				return base
			}
		}
		if near := spelling.Nearest(tail, bases, 2); near != "" {
			return near
		}
	}
	return ""
}

func (r *reader) unknownKey(key, base, preference, name string) {
	if base == ownDomain {
		own, _, _ := strings.Cut(name, ".")
		known := ownNames()
		if preference == "" && slices.Contains(known, own) {
			return // another container's
		}
		r.found(Unknown, key, "unknown key%s", spelling.Hint(spelling.Nearest(own, known, 3)))
		return
	}
	if preference == "" {
		preference, name = name, "pod" // the old form, DOMAIN/NAME
	}
	if reason, ok := unserved[preference]; ok {
		r.found(Unserved, key, "%s", reason)
		return
	}
	if _, ok := foreign[preference]; !ok {
		known := slices.Concat(sortedKeys(foreign), sortedKeys(unserved), []string{"affinity", "anti-affinity"})
		r.found(Unknown, key, "unknown key%s", spelling.Hint(spelling.Nearest(preference, known, 3)))
		return
	}
	if name != "pod" && !strings.HasPrefix(name, "container.") { // with neither, the key has been served
		r.found(Unknown, key, "%.60q is neither pod nor container.NAME", name)
	}
}
