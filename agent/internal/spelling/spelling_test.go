package spelling

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"", "far", "near", "cpus", "cores", "colocatePods"}
	for word, want := range map[string]string{
		"naer": "near", "NEAR": "near", "fear": "far", "cors": "cores", "colocatepod": "colocatePods", "device": "", "\xff\xfe\xfd": "",
		strings.Repeat("near", 1000): "",
	} {
		if got := Nearest(word, known, 2); got != want {
			t.Errorf("%.40q: %q, want %q", word, got, want)
		}
	}
}
