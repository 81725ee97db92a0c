"""Packets that are lost by chance, where neither netem nor iptables is at hand."""

import ctypes
import os
import platform
import socket
import struct

_libc = ctypes.CDLL(None, use_errno=True)

SYSCALLS = {"x86_64": 321, "aarch64": 280}
"""The number of bpf()."""
MAP, READ, LOAD, LINK = 0, 1, 5, 28
"""Its commands BPF_MAP_CREATE, BPF_MAP_LOOKUP_ELEM, BPF_PROG_LOAD and BPF_LINK_CREATE."""
ARRAY, XDP_TYPE, XDP_ATTACH = 2, 6, 37
"""BPF_MAP_TYPE_ARRAY, BPF_PROG_TYPE_XDP and BPF_XDP."""
CALL, LESS, EQUAL, EXIT = 0x85, 0xA6, 0x15, 0x95
"""Instructions: call a helper, jump if a register is less as 32 bits, jump if it is equal, return r0."""
MOVE, COPY, ADD, STORE, INCREASE, MAP_OF = 0xB7, 0xBF, 0x07, 0x62, 0xDB, 0x18
"""Instructions: set a register, copy one, add to one, store 32 bits, add to 64 bits at once, take a map."""
FIND, RANDOM, DROP, PASS = 1, 7, 1, 2
"""The helpers bpf_map_lookup_elem and bpf_get_prandom_u32, and the answers XDP_DROP and XDP_PASS."""


class Loss:
    """An XDP program on an interface of this thread's network. It drops a part of the packets that come,
    and counts them, until it is closed. `OSError`: the kernel does not allow it."""

    def __init__(self, interface, part):
        # One number of 64 bits, at the key 0.
        self._count = _bpf(MAP, struct.pack("<IIII", ARRAY, 4, 8, 1))
        program = None
        try:
            program = _load(_steps(min(int(part * 2**32), 2**32 - 1), self._count))
            place = socket.if_nametoindex(interface)
            self._link = _bpf(LINK, struct.pack("<IIII", program, place, XDP_ATTACH, 0))
        except OSError:
            os.close(self._count)
            raise
        finally:
            if program is not None:
                os.close(program)

    def dropped(self):
        """The number of packets that were dropped until now."""
        key, found = ctypes.c_uint32(0), ctypes.c_uint64(0)
        places = ctypes.addressof(key), ctypes.addressof(found)
        _bpf(READ, struct.pack("<IIQQQ", self._count, 0, *places, 0))
        return found.value

    def close(self):
        """All packets arrive again."""
        os.close(self._link)
        os.close(self._count)


def _steps(least, count):
    """The program: instruction, registers (the one that is changed, and 16 times the other), jump, value. It
    passes a packet whose random number is not less than `least`."""
    return [
        (CALL, 0x00, 0, RANDOM),
        (LESS, 0x00, 2, least),
        (MOVE, 0x00, 0, PASS),
        (EXIT, 0x00, 0, 0),
        # The key is on the stack, below r10. r1 is the map, for which the other "register" says so.
        (STORE, 0x0A, -4, 0),
        (COPY, 0xA2, 0, 0),
        (ADD, 0x02, 0, -4),
        (MAP_OF, 0x11, 0, count),
        (0, 0, 0, 0),
        (CALL, 0x00, 0, FIND),
        (EQUAL, 0x00, 2, 0),
        (MOVE, 0x01, 0, 1),
        (INCREASE, 0x10, 0, 0),
        (MOVE, 0x00, 0, DROP),
        (EXIT, 0x00, 0, 0),
    ]


def _load(steps):
    packed = [struct.pack("<BBhI", *step[:3], step[3] & 0xFFFFFFFF) for step in steps]
    code, license = ctypes.create_string_buffer(b"".join(packed)), ctypes.create_string_buffer(b"GPL")
    load = struct.pack("<IIQQ", XDP_TYPE, len(steps), ctypes.addressof(code), ctypes.addressof(license))
    return _bpf(LOAD, load.ljust(68, b"\0") + struct.pack("<I", XDP_ATTACH))


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
