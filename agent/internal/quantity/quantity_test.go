package quantity

import "testing"

func TestCPUs(t *testing.T) {
	for text, want := range map[string]int{"8": 8000, "750m": 750, "1.5": 1500, "0.0001": 1, "0": 0, " 2 ": 2000, "1k": 1000000} {
		if got, err := MilliCPU(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestMemory(t *testing.T) {
	for text, want := range map[string]int64{"128Gi": 128 << 30, "1G": 1e9, "512Mi": 512 << 20, "100": 100, "1e3": 1000, "500m": 1} {
		if got, err := Bytes(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestNonsense(t *testing.T) {
	for _, text := range []string{"", "m", "-1", "x", "NaN", "Inf", "1e300", "1Gii"} {
		if got, err := MilliCPU(text); err == nil {
			t.Errorf("%q CPUs: %d", text, got)
		}
		if got, err := Bytes(text); err == nil {
			t.Errorf("%q bytes: %d", text, got)
		}
	}
}
