// Package quantity reads amounts as Kubernetes writes them: "750m" or "1.5" CPUs, "128Gi" of memory.
package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// suffixes of memory, the longer ones first.
var suffixes = []struct {
	name   string
	factor float64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}, {"Pi", 1 << 50},
	{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"m", 1e-3}, {"", 1},
}

// MilliCPU reads CPUs and returns thousandths, rounded up.
func MilliCPU(text string) (int, error) {
	value, err := parse(text)
	if err != nil || value > 1e6 {
		return 0, fmt.Errorf("%.40q is not a number of CPUs such as 2, 1.5 or 750m", text)
	}
	return int(math.Ceil(value * 1000)), nil
}

// Bytes reads an amount of memory.
func Bytes(text string) (int64, error) {
	value, err := parse(text)
	if err != nil || value > 1<<60 {
		return 0, fmt.Errorf("%.40q is not an amount of memory such as 512Mi or 128Gi", text)
	}
	return int64(math.Ceil(value)), nil
}

func parse(text string) (float64, error) {
	for _, s := range suffixes {
		number, found := strings.CutSuffix(strings.TrimSpace(text), s.name)
		if !found {
			continue
		}
		value, err := strconv.ParseFloat(number, 64)
		if err != nil || math.IsNaN(value) || value < 0 {
			return 0, fmt.Errorf("%q is not an amount", text)
		}
		// Thousandths of a byte or of a CPU are exact only when the division comes last.
		if s.factor < 1 {
			return value / 1000, nil
		}
		return value * s.factor, nil
	}
	return 0, fmt.Errorf("%q is not an amount", text)
}
