"""Which devices a process has mapped: a mapping keeps a device open after its descriptor is closed."""

from __future__ import annotations

import array
import errno
import os
import struct

from cuda_fork_guard.device_nodes import COMMON_PREFIXES, device_node

# PROCMAP_QUERY (Linux 6.11) hands out only the mappings that fit the flags; printing /proc/PID/maps spells out the
# hundreds of a program's libraries too, and takes four times as long.
_QUERY = struct.Struct("=9Q4I2Q")
_PROCMAP_QUERY = 0xC068_6611  # _IOWR('f', 17, struct procmap_query)
_SHARED = 0x08  # device memory can be mapped no other way
_OR_NEXT = 0x10
_FILE = 0x20
_NAME_LIMIT = 4096


def mapped_devices(maps: str, at: int | None = None) -> tuple[str, ...]:
    """Device nodes mapped by the process whose `/proc/PID/maps` this is (relative to the folder `at`), each once."""
    fd = os.open(maps, os.O_RDONLY | os.O_CLOEXEC, dir_fd=at)
    try:
        try:
            names = _query_names(fd)
        except OSError as error:
            if error.errno == errno.ESRCH:  # it has ended
                raise
            # An older kernel, or a sandbox that refuses calls it does not know.
            names = _printed_names(fd)
    finally:
        os.close(fd)
    return tuple(sorted({node for name in names if (node := device_node(name)) is not None}))


def _query_names(fd: int) -> list[str]:
    import fcntl  # Unix has it alone

    query = bytearray(_QUERY.size)
    name = array.array("B", bytes(_NAME_LIMIT))
    where = name.buffer_info()[0]
    names: list[str] = []
    address = 0
    while True:
        _QUERY.pack_into(
            query, 0, _QUERY.size, _SHARED | _OR_NEXT | _FILE, address, 0, 0, 0, 0, 0, 0, 0, 0, _NAME_LIMIT, 0, where, 0
        )
        try:
            fcntl.ioctl(fd, _PROCMAP_QUERY, query)
        except OSError as error:
            if error.errno == errno.ENOENT:  # none is left
                return names
            raise  # a name too long for the buffer too: the text has room
        fields = _QUERY.unpack_from(query)
        names.append(os.fsdecode(name[: max(fields[11] - 1, 0)].tobytes()))
        address = fields[4]


def _printed_names(fd: int) -> list[str]:
    names: list[str] = []
    rest = b""
    prefixes = tuple(b" " + prefix.encode("ascii") for prefix in COMMON_PREFIXES)
    while chunk := os.read(fd, 1 << 16):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        # Fields: range, rights, offset, device, inode, name; the name may hold spaces.
        names += [os.fsdecode(line.split(None, 5)[5]) for line in lines if any(p in line for p in prefixes)]
    return names
