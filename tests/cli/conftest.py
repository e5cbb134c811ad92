"""A stage for programs: /dev is their own, the rest of the machine is real."""

from __future__ import annotations

import textwrap

import private_dev
import pytest


@pytest.fixture
def play(tmp_path):
    def play(body: str, *, unshare: tuple[str, ...] = ()) -> None:
        program = tmp_path / "program.py"
        head = "import contextlib, json, mmap, os, re, signal, subprocess, sys, threading\nfrom stage import *\n"
        program.write_text(f"{head}with stage():\n{textwrap.indent(textwrap.dedent(body), '    ')}")
        done = private_dev.run(program, unshare=unshare)
        assert done.ok().out.endswith("played\n")

    return play
