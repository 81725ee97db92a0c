package cpuset

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestListFormatRoundTrips(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "0": "0", " 0-3\n": "0-3", "3,1,2": "1-3", "0-1,4,6-7": "0-1,4,6-7", "1023,1024-1030,4000": "1023-1030,4000",
	} {
		set, err := Parse(list)
		if err != nil || set.String() != want {
			t.Errorf("Parse(%q) = %q, %v; want %q", list, set, err, want)
		}
	}
	for _, bad := range []string{"a", "1-", "-1", "3-1", "1,,2", "0-8192", "0-99999999999", "0x3", "1-2-3"} {
		if set, err := Parse(bad); err == nil {
			t.Errorf("Parse(%q) = %q, want an error", bad, set)
		}
	}
}

func TestMaskFormatIsReadAndBadOnesAreRejected(t *testing.T) {
	for mask, want := range map[string]string{
		"f": "0-3", "00000000,00000005": "0,2", "80000001,00000000\n": "32,63", "00000001,00000000,00000000": "64",
	} {
		set, err := ParseMask(mask)
		if err != nil || set.String() != want {
			t.Errorf("ParseMask(%q) = %q, %v; want %q", mask, set, err, want)
		}
	}
	for _, bad := range []string{"", "x", "100000000", "0,,1", "-1", strings.Repeat("0,", 300) + "1"} {
		if set, err := ParseMask(bad); err == nil {
			t.Errorf("ParseMask(%q) = %q, want an error", bad, set)
		}
	}
}

// The algebra is checked against a map of booleans.
func TestAlgebraAgreesWithModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func() (Set, map[int]bool) {
		model := map[int]bool{}
		var ids []int
		for range random.IntN(40) {
			id := random.IntN(300)
			model[id] = true
			ids = append(ids, id)
		}
		return Of(ids...), model
	}
	for range 2000 {
		a, ma := draw()
		b, mb := draw()
		within, meets := true, false
		for id := range 320 {
			x, y := ma[id], mb[id]
			if a.Has(id) != x || a.Union(b).Has(id) != (x || y) || a.Intersect(b).Has(id) != (x && y) || a.Minus(b).Has(id) != (x && !y) {
				t.Fatalf("sets %q and %q disagree with the model at %d", a, b, id)
			}
			within = within && (!x || y)
			meets = meets || (x && y)
		}
		if a.Within(b) != within || a.Meets(b) != meets || a.Len() != len(ma) || a.Empty() != (len(ma) == 0) {
			t.Fatalf("sets %q and %q: Within, Meets, Len or Empty is wrong", a, b)
		}
		if !a.Minus(b).Union(a.Intersect(b)).Equal(a) {
			t.Fatalf("sets %q and %q: difference and intersection do not make up the set", a, b)
		}
		again, err := Parse(a.String())
		if err != nil || !again.Equal(a) {
			t.Fatalf("%q does not survive its own format", a)
		}
	}
}

func TestJSONIsTheListFormat(t *testing.T) {
	out, err := json.Marshal(map[string]Set{"cpus": Of(1, 2, 3, 9)})
	if err != nil || string(out) != `{"cpus":"1-3,9"}` {
		t.Fatalf("got %s, %v", out, err)
	}
	var in map[string]Set
	if err := json.Unmarshal(out, &in); err != nil || !in["cpus"].Equal(Of(1, 2, 3, 9)) {
		t.Fatalf("got %v, %v", in, err)
	}
}
