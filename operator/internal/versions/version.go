package versions

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/version"
)

// Version is a version of a database server. Two of them compare as semantic versions do, with the build of
// the distributor (33.1 in 8.0.42-33.1) as prerelease. A server that does not say its build counts as every
// build of its number: a generic version is compared without prereleases.
type Version struct {
	text   string
	number *version.Version
}

var (
	named   = regexp.MustCompile(`^[0-9]{1,5}\.[0-9]{1,5}(\.[0-9]{1,5})?(-[0-9A-Za-z.-]{1,40})?$`)
	running = regexp.MustCompile(`^(?:5\.5\.5-)?([0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,5})(-.*)?$`)
	build   = regexp.MustCompile(`^-([0-9]{1,5}(?:\.[0-9]{1,5})*)(?:-[A-Za-z][0-9A-Za-z-]*)?$`)
)

// ParseVersion reads a version as version services and users write it: 8.0.42-33.1, or 11.8.3.
func ParseVersion(text string) (Version, error) {
	parts := named.FindStringSubmatch(text)
	if parts == nil {
		return Version{}, fmt.Errorf("%q is no version: write it as 8.0.42-33.1 or 11.8.3", short(text))
	}
	whole := text
	if parts[1] == "" {
		whole = text[:len(text)-len(parts[2])] + ".0" + parts[2]
	}
	number, err := version.ParseSemantic(whole)
	if err != nil {
		return Version{}, fmt.Errorf("%q is no version: write it as 8.0.42-33.1 or 11.8.3", short(text))
	}
	return Version{text: text, number: number}, nil
}

// ParseRunning reads what a server says of itself: 8.0.42-33.1, 5.7.44-48-57, or 11.8.3-MariaDB-log behind
// the 5.5.5- with which MariaDB begins its greeting.
func ParseRunning(text string) (Version, error) {
	parts := running.FindStringSubmatch(text)
	if parts == nil {
		return Version{}, fmt.Errorf("a server says that its version is %q, which is none", short(text))
	}
	if known := build.FindStringSubmatch(parts[2]); known != nil {
		return ParseVersion(parts[1] + "-" + known[1])
	}
	number, err := version.ParseGeneric(parts[1])
	return Version{text: parts[1], number: number}, err
}

// String is the version as it was written, or the part of a server's own words that counts.
func (v Version) String() string { return v.text }

// Series is the part that no update changes: major and minor number.
func (v Version) Series() string {
	return fmt.Sprintf("%d.%d", v.number.Major(), v.number.Minor())
}

// Newer tells whether v comes after other.
func (v Version) Newer(other Version) bool { return v.number.GreaterThan(other.number) }

// Same tells whether neither comes after the other.
func (v Version) Same(other Version) bool { return v.number.EqualTo(other.number) }

// Newest is the newest of the versions that servers say, which all have to be of one series; nil: none says
// one.
func Newest(said []string) (*Version, error) {
	var newest *Version
	for _, text := range said {
		next, err := ParseRunning(text)
		if err != nil {
			return nil, err
		}
		if newest != nil && next.Series() != newest.Series() {
			return nil, fmt.Errorf("members run %s and %s, which no update brings together", newest, next)
		}
		if newest == nil || next.Newer(*newest) {
			newest = &next
		}
	}
	return newest, nil
}

// short is a stranger's text as a message may show it.
func short(text string) string {
	if len(text) > 80 {
		return text[:80] + "…"
	}
	return text
}
