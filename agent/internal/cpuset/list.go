package cpuset

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxID bounds what Parse accepts: the highest id that a Linux kernel can be built for (NR_CPUS is at most
// 8192), so that a hostile list ("0-999999999") cannot take the agent's memory.
const MaxID = 8191

// Parse reads the kernel's list format: "0-3,8,10-11". Empty text is the empty set.
func Parse(list string) (Set, error) {
	list = strings.TrimSpace(list)
	if list == "" {
		return Set{}, nil
	}
	result := Set{}
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || first < 0 || last < first || last > MaxID {
			return Set{}, fmt.Errorf("%q is not a list of ids such as 0-3,8 (bad part %q)", list, part)
		}
		result = result.Union(Range(first, last))
	}
	return result, nil
}

// String writes the kernel's list format, the shortest form of it.
func (s Set) String() string {
	var b strings.Builder
	ids := s.IDs()
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(ids[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(ids[j]))
		}
		i = j + 1
	}
	return b.String()
}

// MarshalText writes the list format, so that sets are readable in JSON and YAML.
func (s Set) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the list format.
func (s *Set) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// ParseMask reads the kernel's mask format: groups of eight hexadecimal digits, the highest ids first:
// "00000000,0000000f".
func ParseMask(mask string) (Set, error) {
	groups := strings.Split(strings.TrimSpace(mask), ",")
	if len(groups) > (MaxID+1)/32 {
		return Set{}, fmt.Errorf("a mask of more than %d CPUs", MaxID+1)
	}
	var ids []int
	for i, group := range groups {
		word, err := strconv.ParseUint(group, 16, 32)
		if err != nil {
			return Set{}, fmt.Errorf("%.80q is not a mask such as 00000000,0000000f", mask)
		}
		for bit := range 32 {
			if word&(1<<bit) != 0 {
				ids = append(ids, 32*(len(groups)-1-i)+bit)
			}
		}
	}
	return Of(ids...), nil
}
