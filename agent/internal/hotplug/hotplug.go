// Package hotplug hears from the kernel when CPUs or memory come and go.
package hotplug

import (
	"bytes"
	"context"
	"errors"
	"os"
	"syscall"
)

// Every program may listen to what the kernel tells udev; a pod's network namespace hears it too.
const (
	uevents  = 15 // NETLINK_KOBJECT_UEVENT
	kernel   = 1  // the group that the kernel itself sends to
	longest  = 1 << 16
	ofCPUs   = "SUBSYSTEM=cpu"
	ofMemory = "SUBSYSTEM=memory"
)

// Watch calls changed whenever a CPU or a block of memory has come or gone, until the context ends. It sleeps
// in between.
func Watch(ctx context.Context, changed func()) error {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, uevents)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	socket := os.NewFile(uintptr(fd), "uevents")
	defer socket.Close()
	if err := syscall.Bind(fd, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK, Groups: kernel}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	defer stop()
	message := make([]byte, longest)
	for {
		n, err := socket.Read(message)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, syscall.ENOBUFS): // more has happened than the kernel keeps
			changed()
		case err != nil:
			return err
		case concerns(message[:n]):
			changed()
		}
	}
}

// concerns tells whether an event is about a CPU or memory. Its lines are separated by NUL.
func concerns(event []byte) bool {
	for _, line := range bytes.Split(event, []byte{0}) {
		if s := string(line); s == ofCPUs || s == ofMemory {
			return true
		}
	}
	return false
}
