#!/usr/bin/env python3
"""Fetch real NVIDIA driver libraries into a cache, so that the driver checks can run without a GPU.

    scripts/fetch_drivers.py [--cache FOLDER] [MAJOR ...]

Each becomes FOLDER/MAJOR/libcuda.so.1. They come from the non-free section of the Debian mirror that this system's
own apt is set up to use, through an apt configuration, a sources list and a state folder made for the purpose: the
system's apt keeps its lists, its sources and its packages as they are. What is in the cache is not fetched again.

Exit code 0: at least two of the wanted libraries (or the only one asked for) are in the cache; 1: fewer.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MAJORS = ("470", "535", "550", "555")
# One major version moves between suites and package names as Debian goes on: all places it may be in are asked.
PACKAGES = ("libcuda1", "libnvidia-tesla-470-cuda1", "libnvidia-tesla-535-cuda1", "libnvidia-tesla-550-cuda1")
SUITES = ("bookworm", "trixie", "sid", "experimental")
ENOUGH = 2
DEFAULT_CACHE = Path(__file__).resolve().parent.parent / ".cache" / "drivers"
# Loading proves that the file is whole and that nothing it needs is missing; no cuInit, which would make a node in
# /dev when run as root.
LOADS = "import ctypes, sys; v = ctypes.c_int(); sys.exit(ctypes.CDLL(sys.argv[1]).cuDriverGetVersion(ctypes.byref(v)))"

Options = dict[str, str]


class Unavailable(Exception):
    """The library can't be had here; the text says why."""


def parse_deb822(text: str) -> list[Options]:
    """The stanzas of a .sources file, field names in lower case; a continued field keeps its line breaks."""
    stanzas: list[Options] = []
    for block in re.split(r"\n[ \t]*\n", "\n".join(line for line in text.splitlines() if not line.startswith("#"))):
        fields: Options = {}
        name = ""
        for line in block.splitlines():
            if line[:1] in (" ", "\t") and name:
                fields[name] += "\n" + line
            elif ":" in line:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        if fields:
            stanzas.append(fields)
    return stanzas


def parse_one_line(text: str) -> list[Options]:
    """The entries of a classic .list file, with the field names of a .sources file."""
    entries: list[Options] = []
    for line in text.splitlines():
        match = re.match(r"(deb|deb-src)\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s*([^#]*)", line.strip())
        if not match:
            continue
        kind, options, uri, suite, components = match.groups()
        entry = {"types": kind, "uris": uri, "suites": suite, "components": components.strip()}
        for option in (options or "").split():
            name, _, value = option.partition("=")
            entry[name.lower()] = value
        entries.append(entry)
    return entries


def debian_archive(entries: list[Options], codename: str) -> Options:
    """The entry that holds this Debian release itself: not its security updates, not a third party's packages."""
    for entry in entries:
        if (
            "deb" in entry.get("types", "").split()
            and entry.get("enabled", "yes").lower() not in ("no", "false", "0")
            and codename in entry.get("suites", "").split()
            and "main" in entry.get("components", "").split()
        ):
            return entry
    raise Unavailable(f"this system's apt has no source for Debian {codename or '(not a Debian system)'} main")


def system_sources() -> list[Options]:
    folder = Path("/etc/apt")
    files = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*.list"))]
    entries = [entry for file in files if file.is_file() for entry in parse_one_line(file.read_text())]
    for file in sorted((folder / "sources.list.d").glob("*.sources")):
        entries += parse_deb822(file.read_text())
    return entries


def debian_codename() -> str:
    fields = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return fields.get("VERSION_CODENAME", "").strip('"') if fields.get("ID", "").strip('"') == "debian" else ""


class PrivateApt:
    """apt with a configuration and state of its own under `root`, and the system's mirror, keyring and network."""

    def __init__(
        self, root: Path, archive: Options, *, suites: tuple[str, ...] = SUITES, component: str = "non-free"
    ) -> None:
        for folder in ("lists/partial", "archives/partial", "none", "download"):
            (root / folder).mkdir(parents=True)
        (root / "status").touch()
        source = {"Types": "deb", "URIs": archive["uris"], "Suites": " ".join(suites), "Components": component}
        source |= {name: archive[name.lower()] for name in ("Signed-By", "Trusted") if name.lower() in archive}
        (root / "drivers.sources").write_text("".join(f"{name}: {value}\n" for name, value in source.items()))
        # The system's own parts are left out, as its hooks may delete files of the system's cache; what says how to
        # reach the network (proxies and the like) is kept.
        dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
        kept = [line for line in dump.splitlines() if re.match(r"Acquire::(?!IndexTargets|Changelogs)", line)]
        config = {
            "Dir::Etc::main": root / "none" / "apt.conf",
            "Dir::Etc::parts": root / "none",
            "Dir::Etc::sourcelist": root / "drivers.sources",
            "Dir::Etc::sourceparts": root / "none",
            "Dir::Etc::preferences": root / "none" / "preferences",
            "Dir::Etc::preferencesparts": root / "none",
            "Dir::State": root,
            "Dir::State::status": root / "status",
            "Dir::Cache": root,
            # apt's own user can't enter a folder of somebody else's.
            "APT::Sandbox::User": "root",
        }
        (root / "apt.conf").write_text("\n".join([*kept, *(f'{key} "{value}";' for key, value in config.items()), ""]))
        self.root = root
        self.environment = {**os.environ, "APT_CONFIG": str(root / "apt.conf"), "LC_ALL": "C"}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.root / "download", env=self.environment, capture_output=True, text=True, timeout=120
        )

    def versions(self) -> list[tuple[str, str]]:
        """(package, version) of every driver library on offer, the newest first within a package."""
        update = self.run("apt-get", "-q", "update")
        found = self.run("apt-cache", "madison", *PACKAGES).stdout
        rows = [tuple(column.strip() for column in line.split("|")[:2]) for line in found.splitlines()]
        if not rows:
            raise Unavailable(f"apt found no driver package: {update.stderr.strip() or 'the lists are empty'}")
        return [(row[0], row[1]) for row in rows]

    def unpack(self, package: str, version: str, into: Path) -> Path:
        """Download one package and unpack it; the path of its libcuda."""
        got = self.run("apt-get", "-q", "download", f"{package}={version}")
        files = list((self.root / "download").glob(f"{package}_*.deb"))
        if got.returncode or len(files) != 1:
            raise Unavailable(f"{package} {version}: {got.stderr.strip()}")
        subprocess.run(["dpkg-deb", "-x", str(files[0]), str(into)], check=True, timeout=120)
        files[0].unlink()
        libraries = [file for file in into.rglob("libcuda.so.*.*") if file.is_file() and not file.is_symlink()]
        if len(libraries) != 1:
            raise Unavailable(f"{package} {version} holds {len(libraries)} files libcuda.so.VERSION, not one")
        return libraries[0]


def loads(library: Path) -> bool:
    return subprocess.run([sys.executable, "-c", LOADS, str(library)], capture_output=True, timeout=60).returncode == 0


def store(library: Path, major: str, cache: Path) -> None:
    """Put the library into the cache in one step: another process may be looking, or doing the same."""
    if not loads(library):
        raise Unavailable(f"{library.name} can't be loaded here")
    with tempfile.TemporaryDirectory(dir=cache, prefix=".new-") as folder:
        new = Path(folder) / major
        new.mkdir()
        shutil.copyfile(library, new / library.name)
        (new / "libcuda.so.1").symlink_to(library.name)
        try:
            new.rename(cache / major)
        except OSError:
            if not cached(major, cache):
                raise


def cached(major: str, cache: Path) -> bool:
    return (cache / major / "libcuda.so.1").is_file()


def fetch(majors: list[str], cache: Path) -> None:
    """Fetch what is missing; what can't be had is named on stderr."""
    for tool in ("apt-get", "apt-cache", "apt-config", "dpkg-deb"):
        if not shutil.which(tool):
            raise Unavailable(f"{tool} isn't here: the packages are Debian's")
    archive = debian_archive(system_sources(), debian_codename())
    with tempfile.TemporaryDirectory(prefix="drivers-") as folder:
        apt = PrivateApt(Path(folder), archive)
        offered = apt.versions()
        for major in majors:
            mine = [(package, version) for package, version in offered if version.startswith(major + ".")]
            if not mine:
                print(f"driver {major}: no package in {', '.join(SUITES)} has it any more", file=sys.stderr)
            for package, version in mine:
                try:
                    store(apt.unpack(package, version, Path(folder) / f"{package}_{version}"), major, cache)
                except (Unavailable, OSError, subprocess.SubprocessError) as error:
                    print(f"driver {major}: {error}", file=sys.stderr)
                else:
                    print(f"driver {major}: fetched {package} {version}")
                    break


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("majors", nargs="*", metavar="MAJOR", help=f"default: {' '.join(MAJORS)}")
    parser.add_argument("--cache", type=Path, default=Path(os.environ.get("CUDA_FORK_GUARD_DRIVERS", DEFAULT_CACHE)))
    options = parser.parse_args(arguments)
    majors = options.majors or list(MAJORS)
    if unknown := [major for major in majors if major not in MAJORS]:
        parser.error(f"unknown driver {unknown[0]}: choose from {' '.join(MAJORS)}")
    options.cache.mkdir(parents=True, exist_ok=True)
    missing = [major for major in majors if not cached(major, options.cache)]
    if missing:
        try:
            fetch(missing, options.cache)
        except (Unavailable, OSError, subprocess.SubprocessError) as error:
            print(f"no driver could be fetched: {error}", file=sys.stderr)
    have = [major for major in majors if cached(major, options.cache)]
    lost = [major for major in majors if major not in have]
    print(
        f"drivers in {options.cache}: {' '.join(have) or 'none'}{'; not to be had: ' + ' '.join(lost) if lost else ''}"
    )
    return 0 if len(have) >= min(ENOUGH, len(majors)) else 1


if __name__ == "__main__":
    sys.exit(main())
