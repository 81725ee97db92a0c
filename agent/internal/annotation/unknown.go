package annotation

import (
	"slices"
	"strings"

	"proxima.io/agent/internal/spelling"
)

// unknownKeys reports every annotation of a dialect's domain, or of one that looks like it, that nothing has
// taken.
func (r *reader) unknownKeys() {
	for _, key := range sortedKeys(r.annotations) {
		if r.served[key] {
			continue
		}
		domain, name, hasName := strings.Cut(key, "/")
		base, preference, ours := split(domain)
		if !ours {
			switch near := misspelt(domain); {
			case near != "":
				r.found(Unknown, key, "unknown domain; did you mean %s?", near)
			case !hasName && bare(key):
				r.found(Unknown, key, "a key without a domain; did you mean %s?", whole(key))
			case hasName && earlier(domain):
				r.found(Unknown, key, "a domain that was used before a release, or by nobody; the domains are %s, %s and %s",
					ownDomain, nriDomain, criRMDomain)
			}
			continue
		}
		if !hasName {
			name = ""
		}
		r.unknownKey(key, base, preference, name)
	}
}

// ours are the words of our dialect that nobody else would write without a domain.
var ours = []string{"near", "far", "cpus", "cores", "device-hints"}

// bare tells whether a key lacks nothing but its domain: near, near.redis, prefer-isolated-cpus.
func bare(key string) bool {
	word, _, _ := strings.Cut(key, ".")
	_, theirs := foreign[key]
	return theirs || slices.Contains(ours, word) || key == "affinity" || key == "anti-affinity"
}

// whole is what such a key may have meant.
func whole(key string) string {
	if _, theirs := foreign[key]; theirs {
		return key + "." + nriDomain + "/pod"
	}
	if key == "affinity" || key == "anti-affinity" {
		return nriDomain + "/" + key
	}
	return ownDomain + "/" + key
}

// earlier tells whether a domain is one under which the dialects went before they were released: one of their
// preferences stands in front of it, or its own words are in another order.
func earlier(domain string) bool {
	for preference := range foreign {
		if strings.HasPrefix(domain, preference+".") {
			return true
		}
	}
	for _, words := range []string{"resource-policy.", "resource-manager.", "resource-management.", "resmgr.", "proxima."} {
		if strings.HasPrefix(domain, words) || strings.Contains(domain, "-"+words) || strings.Contains(domain, "."+words) {
			return true
		}
	}
	return false
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

// misspelt returns the dialect's domain that one, or what follows a preference in it, nearly is: letters are
// wrong, or its end was forgotten (proxima/near).
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
