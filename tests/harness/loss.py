"""Packets that are lost by chance, where neither netem nor iptables is at hand."""

import ctypes
import os
import platform
import socket
import struct

_libc = ctypes.CDLL(None, use_errno=True)

SYSCALLS = {"x86_64": 321, "aarch64": 280}
"""The number of bpf()."""
LOAD, LINK = 5, 28
"""Its commands BPF_PROG_LOAD and BPF_LINK_CREATE."""
XDP_TYPE, XDP_ATTACH = 6, 37
"""BPF_PROG_TYPE_XDP and BPF_XDP."""
CALL, LESS, MOVE, EXIT = 0x85, 0xA6, 0xB7, 0x95
"""Instructions: call a helper, jump if r0 is less as 32 bits, set r0, return r0."""
RANDOM, DROP, PASS = 7, 1, 2
"""The helper bpf_get_prandom_u32, and the answers XDP_DROP and XDP_PASS."""


class Loss:
    """An XDP program on an interface of this thread's network. It drops a part of the packets that come,
    until it is closed. `OSError`: the kernel does not allow it."""

    def __init__(self, interface, part):
        steps = [
            (CALL, 0, RANDOM),
            (LESS, 2, int(part * 2**32)),
            (MOVE, 0, PASS),
            (EXIT, 0, 0),
            (MOVE, 0, DROP),
            (EXIT, 0, 0),
        ]
        code = b"".join(struct.pack("<BBhI", step, 0, jump, value) for step, jump, value in steps)
        code, license = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
        load = struct.pack("<IIQQ", XDP_TYPE, len(steps), ctypes.addressof(code), ctypes.addressof(license))
        program = _bpf(LOAD, load.ljust(68, b"\0") + struct.pack("<I", XDP_ATTACH))
        try:
            place = socket.if_nametoindex(interface)
            self._link = _bpf(LINK, struct.pack("<IIII", program, place, XDP_ATTACH, 0))
        finally:
            os.close(program)

    def close(self):
        """All packets arrive again."""
        os.close(self._link)


def _bpf(command, attributes):
    number = SYSCALLS.get(platform.machine())
    if number is None:
        raise OSError(f"the number of bpf() on {platform.machine()} is not known")
    attributes = ctypes.create_string_buffer(attributes, len(attributes))
    result = _libc.syscall(number, command, attributes, len(attributes))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
