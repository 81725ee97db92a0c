package hotplug

import (
	"context"
	"os"
	"testing"
	"time"
)

func TestOnlyEventsOfCPUsAndMemoryConcernUs(t *testing.T) {
	for event, want := range map[string]bool{
		"offline@/devices/system/cpu/cpu3\x00ACTION=offline\x00DEVPATH=/devices/system/cpu/cpu3\x00SUBSYSTEM=cpu\x00SEQNUM=1\x00": true,
		"online@/devices/system/memory/memory9\x00ACTION=online\x00SUBSYSTEM=memory\x00":                                          true,
		"add@/devices/virtual/net/veth0\x00ACTION=add\x00SUBSYSTEM=net\x00":                                                       false,
		"change@/x\x00SUBSYSTEM=cpufreq\x00":                                                                                      false,
		"":                                                                                                                        false,
	} {
		if concerns([]byte(event)) != want {
			t.Errorf("%q: want %t", event, want)
		}
	}
}

// The kernel repeats an event for whoever writes to uevent: the real way, without a CPU that goes.
func TestTheKernelsWordIsHeard(t *testing.T) {
	const file = "/sys/devices/system/cpu/cpu0/uevent"
	if os.Getuid() != 0 {
		t.Skip("skipped: only root may let the kernel repeat an event")
	}
	ctx, cancel := context.WithCancel(context.Background())
	heard, ended := make(chan bool, 100), make(chan error, 1)
	go func() { ended <- Watch(ctx, func() { heard <- true }) }()
	seen := false
	for range 100 {
		if err := os.WriteFile(file, []byte("change"), 0); err != nil {
			t.Skipf("skipped: the kernel does not repeat events here: %v", err)
		}
		select {
		case <-heard:
			seen = true
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(50 * time.Millisecond): // the other may not listen yet
		}
		if seen {
			break
		}
	}
	if !seen {
		t.Error("nothing was heard")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
