package annotation

import (
	"slices"
	"strings"
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
		if near := nearest(tail, bases, 2); near != "" {
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
		r.found(Unknown, key, "unknown key%s", hint(nearest(own, known, 3)))
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
		known := append(sortedKeys(foreign), "affinity", "anti-affinity")
		r.found(Unknown, key, "unknown key%s", hint(nearest(preference, known, 3)))
		return
	}
	if name != "pod" && !strings.HasPrefix(name, "container.") {
		r.found(Unknown, key, "%.60q is neither pod nor container.NAME", name)
	}
}

func hint(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// nearest returns the known word within the given edit distance (Levenshtein), or "". Of equally near ones it takes the one
// with the same first letter: that is the letter people get right.
func nearest(word string, known []string, within int) string {
	best, lowest := "", 2*within+2
	for _, k := range known {
		cost := 2 * distance(word, k)
		if word == "" || !strings.HasPrefix(k, word[:1]) {
			cost++
		}
		if cost < lowest {
			best, lowest = k, cost
		}
	}
	return best
}

func distance(a, b string) int {
	const longest = 64 // domains and keys are short; a hostile one costs no more than this
	if len(a) > longest || len(b) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
