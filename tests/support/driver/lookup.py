"""Checks: which entry cuGetProcAddress gives for a name, a CUDA version and flags."""

from __future__ import annotations

import re
from ctypes import byref, c_int, c_uint64, c_void_p
from typing import Any

from support.driver.api import load, version
from support.driver.elf import driver_entries

VERSIONS = (1000, 2000, 3020, 4000, 6050, 7000, 9020, 10000, 11000, 11010, 11040, 11060, 12000, 12030, 12050)
FLAGS = (0, 1, 2, 3)


def base(name: str) -> str:
    return re.sub(r"(_v\d+)?(_pt[sd][zs])?$", "", name)


def _addresses(path: str) -> tuple[Any, dict[int | None, str]]:
    library = load(path)
    names = [one.name for one in driver_entries(path)]
    return library, {c_void_p.from_buffer(getattr(library, name)).value: name for name in names}


def table(path: str) -> dict[str, str]:
    """ "NAME VERSION FLAGS" -> exported name, "internal", or the code, for each version up to the driver's own."""
    library, names = _addresses(path)
    found: dict[str, str] = {}
    for name in sorted({base(name) for name in names.values()}):
        for asked in [one for one in VERSIONS if one <= version(library)]:
            for flags in FLAGS:
                address = c_void_p()
                code = library.cuGetProcAddress(name.encode(), byref(address), asked, c_uint64(flags))
                answer = names.get(address.value, "internal") if code == 0 else str(code)
                found[f"{name} {asked} {flags}"] = answer
    return found


QUESTIONS = (
    ("cuInit", 2000, 0),
    ("cuInit", 1000, 0),
    ("cuInit", 99000, 3),
    ("cuInit", 12000, 4),
    ("cuNoSuchFunction", 12000, 0),
    ("cuMemAlloc_v2", 12000, 0),
    ("cuCtxGetId", 11000, 0),
    ("", 12000, 0),
)


def second_form(path: str) -> list[Any]:
    """cuGetProcAddress_v2 on QUESTIONS: (code, exported name, status); null where the driver has no second form."""
    library, names = _addresses(path)
    if "cuGetProcAddress_v2" not in names.values():
        return []
    answers = []
    for name, asked, flags in QUESTIONS:
        address, status = c_void_p(), c_int(-1)
        code = library.cuGetProcAddress_v2(name.encode(), byref(address), asked, c_uint64(flags), byref(status))
        answers.append((code, names.get(address.value), status.value))
    return answers
