"""Reads what a 64-bit little-endian shared library exports. Pure; no tool needs to be installed."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_FUNCTION, _UNDEFINED, _DYNSYM = 2, 0, 11


@dataclass(frozen=True)
class Entry:
    name: str
    address: int
    size: int


@dataclass(frozen=True)
class Symbols:
    functions: tuple[Entry, ...]  # defined and exported
    objects: tuple[str, ...]
    needed: frozenset[str]  # names that others must define


def _text(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode()


def symbols(path: str | Path) -> Symbols:
    data = Path(path).read_bytes()
    assert data[:6] == b"\x7fELF\x02\x01", f"{path} is no 64-bit little-endian ELF file"
    (section_offset,) = struct.unpack_from("<Q", data, 40)
    section_size, section_count = struct.unpack_from("<HH", data, 58)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, section_offset + index * section_size) for index in range(section_count)
    ]
    (table,) = [section for section in sections if section[1] == _DYNSYM]
    strings = sections[table[6]][4]
    functions, objects, needed = [], [], set()
    for at in range(table[4], table[4] + table[5], 24):
        name_at, info, _, section, address, size = struct.unpack_from("<IBBHQQ", data, at)
        name = _text(data, strings + name_at)
        if section == _UNDEFINED:
            needed.add(name)
        elif info & 15 == _FUNCTION:
            functions.append(Entry(name, address, size))
        else:
            objects.append(name)
    return Symbols(tuple(functions), tuple(objects), frozenset(needed))


def driver_entries(path: str | Path) -> list[Entry]:
    """The functions of the driver API: debugger's and control entries left out."""
    return [one for one in symbols(path).functions if one.name.startswith("cu") and not one.name.startswith("cudbg")]
