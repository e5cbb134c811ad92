#!/usr/bin/env python3
"""The guard beside a CUDA build of PyTorch, on a machine without a GPU: with a real driver library and with the simulated
driver.

    scripts/real_torch.py [--cache FOLDER] [--table docs/waking-imports.md]

Makes an environment of its own in FOLDER/real-torch (several GB are fetched the first time) and installs this checkout
there. Each scene is a program of its own whose words are checked. With --table it also asks which imports wake CUDA, and
writes the answer with the versions it was asked of. Exit code 0: everything was as expected; 1: something was not.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TORCH = "torch==2.9.1"  # a CUDA 12 build, so that drivers before 580 serve
DRIVER = "550"
# Asked of each import: what installs from the index without a toolkit.
PACKAGES = ("numba-cuda", "cupy-cuda12x", "jax", "jax-cuda12-plugin", "cuda-bindings", "nvidia-ml-py", "numpy")
MODULES = (
    "torch", "torchgen", "triton", "numba", "numba.cuda", "cupy", "jax", "cuda.bindings.driver", "cuda.bindings.runtime",
    "pynvml",
)  # fmt: skip

SCENE = """
import sys
import cuda_fork_guard
import torch
from torch.utils.data import DataLoader, Dataset

print("import:", cuda_fork_guard.status().driver)

class Data(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return torch.zeros(1).cuda()

def call():
    {call}

def main():
    try:
        call()
    except Exception as error:
        print("call:", type(error).__name__)
    status = cuda_fork_guard.status()
    print("driver:", status.driver)
    print("woken:", status.origin.line() if status.origin else None)
    try:
        list(DataLoader(Data(), num_workers=1))
    except Exception as error:
        print("loader:", type(error).__name__)
    print("touches:", cuda_fork_guard.events().counts["touch"])

main()
"""
# What wakes CUDA, the words that the origin must have, and whether torch itself then refuses in a forked child.
CALLS = (
    ("torch.cuda.is_available()", "(torch.cuda.is_available", True),
    ("torch.__config__.show()", "(torch.__config__.show", False),
    ("torch.zeros(1).cuda()", "(torch.zeros(1).cuda() -> cuInit", True),
    ("import triton; triton.runtime.driver.active", "triton.runtime.driver.active -> cuInit", True),
)


def run(command: list[str], folder: Path, library: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    if library is not None:
        environment["LD_LIBRARY_PATH"] = str(library)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL
    )


def prepare(folder: Path) -> Path:
    """The environment's Python, with torch, the packages asked about, and this checkout."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, TORCH, *PACKAGES], check=True)
    subprocess.run([*pip, "--force-reinstall", "--no-deps", str(ROOT)], check=True)
    return python


def scene(python: Path, folder: Path, library: Path, call: str, words: str, refused: bool, up: bool) -> list[str]:
    """What was not as expected."""
    (folder / "train.py").write_text(SCENE.format(call=call), encoding="utf-8")
    lines = SCENE.splitlines()
    line = lines.index("    {call}") + 1
    used = lines.index("        return torch.zeros(1).cuda()") + 1
    done = run([str(python), "train.py"], folder, library)
    wrong = []
    expected = {
        "import: loaded": done.stdout,
        f"driver: {'initialized' if up else 'tried'}": done.stdout,
        f"woken: train.py:{line} in call": done.stdout,
        words: done.stdout,
        "loader: RuntimeError": done.stdout,
        # Without a GPU a real driver never comes up: nobody is accused then.
        f"touches: {int(up and refused)}": done.stdout,
    }
    if up and refused:
        expected[f"  used:    train.py:{used} in __getitem__  (torch.cuda._lazy_init, refused by torch)"] = done.stderr
        expected["(torch DataLoader, from pid"] = done.stderr
        expected[f"  woken:   train.py:{line} in call"] = done.stderr
    for wanted, said in expected.items():
        if wanted not in said:
            wrong.append(f"{wanted!r} is missing")
    if wrong:
        wrong.append(f"--- stdout\n{done.stdout}--- stderr\n{done.stderr}")
    elif done.stderr.count("cuda_fork_guard["):
        print("\n".join(text for text in done.stderr.splitlines() if "CFG102" in text or text.startswith("  ")))
    return wrong


def table(python: Path, folder: Path) -> str:
    """The Markdown table of imports and what they do."""
    versions = run([str(python), "-m", "pip", "list", "--format", "json"], folder).stdout
    installed = {row["name"].lower(): row["version"] for row in json.loads(versions)}
    owners = {
        "torchgen": "torch", "numba.cuda": "numba-cuda", "cupy": "cupy-cuda12x", "pynvml": "nvidia-ml-py",
        "cuda.bindings.driver": "cuda-bindings", "cuda.bindings.runtime": "cuda-bindings",
    }  # fmt: skip
    done = run(
        [str(python), "-m", "cuda_fork_guard", "check-import", "--driver", "simulated", "--json", *MODULES], folder
    )
    answers = json.loads(done.stdout)["modules"]
    rows = ["| import | version | verdict | line |", "| --- | --- | --- | --- |"]
    for answer in answers:
        owner = owners.get(answer["module"], answer["module"])
        detail = answer["woken"] or answer["error"] or answer["reason"]
        rows.append(f"| `{answer['module']}` | {owner} {installed.get(owner, '?')} | {answer['verdict']} | {detail} |")
    today = datetime.date.today().isoformat()
    python_version = run(
        [str(python), "-c", "import platform; print(platform.python_version())"], folder
    ).stdout.strip()
    return (
        "# Which imports wake CUDA\n\nWritten by `scripts/real_torch.py --table` on "
        f"{today}, with Python {python_version} and the simulated driver (a machine without a GPU: "
        "what a package does only where it finds a device is not seen here). Ask it of your own with "
        "`cuda-fork-guard check-import MODULE`.\n\n" + "\n".join(rows) + "\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache")
    parser.add_argument("--table", type=Path)
    args = parser.parse_args()
    folder: Path = args.cache.resolve() / "real-torch"
    folder.mkdir(parents=True, exist_ok=True)
    python = prepare(folder)
    found = run([str(python), "-c", "from cuda_fork_guard import testing; print(testing.driver_folder())"], folder)
    drivers = {"simulated": (Path(found.stdout.strip()), True)}
    real = args.cache.resolve() / "drivers" / DRIVER
    if (real / "libcuda.so.1").exists():
        drivers[f"real {DRIVER}"] = (real, False)
    else:
        print(f"no real driver {DRIVER} in {real}: fetch it with scripts/fetch_drivers.py", file=sys.stderr)
    failed = len(drivers) < 2
    for name, (library, up) in drivers.items():
        for call, words, refused in CALLS:
            wrong = scene(python, folder, library, call, words, refused, up)
            print(f"{'FAILED' if wrong else 'ok':<7} {name:<10} {call}", *wrong, sep="\n")
            failed = failed or bool(wrong)
    if args.table:
        args.table.write_text(table(python, folder), encoding="utf-8")
        print(f"written: {args.table}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
