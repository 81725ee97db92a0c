package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// fetch runs the script once for all tests of a process.
var fetch = sync.OnceValues(func() ([]byte, error) {
	script, err := filepath.Abs("../../testdata/prepare.sh")
	if err != nil {
		return nil, err
	}
	return exec.Command("sh", script, cache).CombinedOutput()
})

// prepare sees to it that the packages are there. It skips the test, and says so, where it cannot. An emulated
// machine has what Emulate gave it: nothing can be fetched there.
func prepare(t testing.TB) {
	t.Helper()
	if InGuest() {
		return
	}
	if testing.Short() {
		t.Skip("skipped: -short leaves out the lanes with real runtimes and machines")
	}
	if os.Getuid() != 0 {
		t.Skip("skipped: a real container runtime needs root")
	}
	if out, err := fetch(); err != nil {
		t.Skipf("skipped: what it needs could not be fetched: %v\n%s", err, out)
	}
}

// ARM64 returns a program that runs those of arm64, or skips the test.
func ARM64(t testing.TB) string {
	t.Helper()
	prepare(t)
	emulator := filepath.Join(cache, "arm64/qemu-aarch64-static")
	if _, err := os.Stat(emulator); err != nil {
		t.Skipf("skipped: the emulator of arm64 could not be fetched: %v", err)
	}
	return emulator
}
