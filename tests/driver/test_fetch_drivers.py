"""scripts/fetch_drivers.py: reads the system's apt sources, keeps what it has, and says what it can't get."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.child import Finished, environment, run
from support.driver.kinds import ROOT, fetch_script

DEB822 = """\
# a comment
Types: deb deb-src
URIs: http://one.invalid/debian http://two.invalid/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://one.invalid/security
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
"""

ONE_LINE = """\
# deb http://commented.invalid/debian bookworm main
deb [arch=amd64 signed-by=/etc/key.gpg] http://one.invalid/debian bookworm main non-free # why
deb-src http://one.invalid/debian bookworm main
nonsense
"""


def test_sources_in_deb822_form() -> None:
    first, second = fetch_script().parse_deb822(DEB822)
    assert first["uris"] == "http://one.invalid/debian http://two.invalid/debian"
    assert first["suites"].split() == ["bookworm", "bookworm-updates"]
    assert first["signed-by"] == "/usr/share/keyrings/debian-archive-keyring.gpg"
    assert second["signed-by"].splitlines()[1:] == [" -----BEGIN PGP PUBLIC KEY BLOCK-----", " .", " abc"]


def test_sources_on_one_line() -> None:
    first, second = fetch_script().parse_one_line(ONE_LINE)
    assert first == {
        "types": "deb",
        "uris": "http://one.invalid/debian",
        "suites": "bookworm",
        "components": "main non-free",
        "arch": "amd64",
        "signed-by": "/etc/key.gpg",
    }
    assert second["types"] == "deb-src"


def test_the_archive_is_neither_security_nor_a_third_party() -> None:
    script = fetch_script()
    ours, security = script.parse_deb822(DEB822)
    disabled = {**ours, "enabled": "no", "uris": "http://disabled.invalid"}
    vendor = {"types": "deb", "uris": "http://vendor.invalid", "suites": "nodistro", "components": "main"}
    assert script.debian_archive([disabled, security, vendor, ours], "bookworm") == ours
    for codename in ("trixie", ""):
        with pytest.raises(script.Unavailable, match="no source for Debian"):
            script.debian_archive([security, vendor, ours], codename)


def test_no_host_is_written_in_the_script() -> None:
    assert "://" not in (ROOT / "scripts" / "fetch_drivers.py").read_text()


def _fetch(*arguments: str, **variables: str) -> Finished:
    script = str(ROOT / "scripts" / "fetch_drivers.py")
    return run([sys.executable, script, *arguments], env=environment(**variables))


def _fake(cache: Path, *majors: str) -> None:
    for major in majors:
        (cache / major).mkdir(parents=True)
        (cache / major / "libcuda.so.1").touch()


def test_what_is_in_the_cache_needs_no_network_and_no_apt(tmp_path: Path) -> None:
    _fake(tmp_path, "470", "535", "550", "555")
    finished = _fetch("--cache", str(tmp_path), PATH="/nowhere").ok()
    assert finished.lines == [f"drivers in {tmp_path}: 470 535 550 555"]
    assert finished.err == ""
    assert _fetch(CUDA_FORK_GUARD_DRIVERS=str(tmp_path), PATH="/nowhere").ok().out == finished.out


def test_two_are_enough_and_what_is_missing_is_named(tmp_path: Path) -> None:
    _fake(tmp_path, "470", "555")
    finished = _fetch("--cache", str(tmp_path), PATH="/nowhere").ok()
    assert finished.lines == [f"drivers in {tmp_path}: 470 555; not to be had: 535 550"]
    assert finished.err == "no driver could be fetched: apt-get isn't here: the packages are Debian's\n"


def test_fewer_than_two_are_a_failure(tmp_path: Path) -> None:
    _fake(tmp_path, "470")
    finished = _fetch("--cache", str(tmp_path), PATH="/nowhere")
    assert finished.code == 1
    assert finished.lines == [f"drivers in {tmp_path}: 470; not to be had: 535 550 555"]
    assert _fetch("--cache", str(tmp_path), "470", PATH="/nowhere").code == 0


def test_unknown_driver_is_bad_usage(tmp_path: Path) -> None:
    finished = _fetch("--cache", str(tmp_path), "471")
    assert finished.code == 2
    assert "unknown driver 471: choose from 470 535 550 555" in finished.err


def test_a_file_that_is_no_library_is_not_stored(tmp_path: Path) -> None:
    script = fetch_script()
    library = tmp_path / "libcuda.so.999.1"
    library.write_text("no library")
    (tmp_path / "cache").mkdir()
    with pytest.raises(script.Unavailable, match=r"libcuda\.so\.999\.1 can't be loaded here"):
        script.store(library, "550", tmp_path / "cache")
    assert os.listdir(tmp_path / "cache") == []
