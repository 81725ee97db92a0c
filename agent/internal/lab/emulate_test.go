package lab

import (
	"testing"
	"time"
)

func TestAMachineWhoseProcessorSpinsIsSilent(t *testing.T) {
	const second = time.Second
	word := &lastWord{}
	for _, step := range []struct {
		says   string
		all    time.Duration
		silent time.Duration
	}{
		{"", 3 * second, 3 * second},
		{"[    1.5] pci_bus 0000:00: ", 4 * second, 4 * second},
		{"a node\r\n", 5 * second, 0},
		{"[   66.8] rcu: INFO: rcu_preempt self-detected stall on CPU\r\n", 9 * second, 4 * second},
		{"[   66.9] Call Trace:\r\n[   66.9]  runc\r\n", 20 * second, 15 * second},
		{"    --- PASS: TestInTheMachine\r\n", 21 * second, 0},
		{"[   70.0] reboot: Power down\r\n", 25 * second, 0},
	} {
		if _, err := word.Write([]byte(step.says)); err != nil {
			t.Fatal(err)
		}
		if silent := word.silent(step.all); silent != step.silent {
			t.Errorf("%q: silent for %v and not for %v", step.says, silent, step.silent)
		}
	}
}

func TestWhatATestInTheMachineSaidIsFoundBeforeTheLogs(t *testing.T) {
	printed := "    near_test.go:88: reader-1: 50 reads\r\n    near_test.go:90: reader 2: \"0\"\r\n    runtime.go:190: containerd's last words:\r\n        time=\"x\" level=info\r\n"
	const want = "    near_test.go:88: reader-1: 50 reads\n    near_test.go:90: reader 2: \"0\"\n    runtime.go:190: containerd's last words:"
	if got := said(printed); got != want {
		t.Errorf("%q", got)
	}
}
