"""On another system `doctor` works and `holders` has no verdict; played here by hiding what only Linux or Unix has."""

from __future__ import annotations

import json

import pytest
from support import child

ELSEWHERE = """
import argparse, multiprocessing, platform, shutil, site, subprocess, sys, threading
for name in ("fcntl", "pwd", "cuda_fork_guard._native"):
    sys.modules[name] = None
sys.platform = {platform!r}
from cuda_fork_guard.cli import main
sys.exit(main({arguments!r}))
"""


@pytest.fixture(params=["darwin", "win32"])
def run(request):
    def run(*arguments: str) -> child.Finished:
        done = child.python(ELSEWHERE.format(platform=request.param, arguments=list(arguments)))
        assert "Traceback" not in done.err, done.err
        return done

    return run


def test_doctor_works_and_says_what_it_can_not_know(run):
    done = run("doctor", "--json")
    report = json.loads(done.out)
    assert report["status"]["supported"] is False and report["complete"] is False
    assert done.code in (1, 3) and "the driver's state" in done.err
    assert run().out.startswith("cuda_fork_guard ")


def test_holders_has_no_verdict(run):
    done = run("holders", "--json")
    report = json.loads(done.out)
    assert done.code == 3 and report["complete"] is False and report["holders"] == []
    assert "only Linux" in done.err and "only Linux" in report["reasons"][0]
    assert run("holders").code == 3
