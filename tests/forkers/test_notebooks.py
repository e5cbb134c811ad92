"""Case 9: CUDA was initialized in one cell, a launcher forks in another; all in a real kernel."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.child import environment, run
from support.forking import CUDA, Report, reports
from support.installed import needs

# Runs the cells that it is given in a kernel of its own, and prints what each one raised. What children write to stderr
# comes out on the kernel's own.
NOTEBOOK = """
import json, sys
import nbclient, nbformat

cells = [nbformat.v4.new_code_cell(source) for source in json.load(sys.stdin)]
notebook = nbformat.v4.new_notebook(cells=cells)
client = nbclient.NotebookClient(notebook, timeout=100, kernel_name="python3", allow_errors=True)
client.execute()
for cell in notebook.cells:
    print(json.dumps("".join(output.get("evalue", "") for output in cell.outputs)))
"""
WAKE = "from cuda_use import driver, touch\n\nassert driver.cuInit(0) == 0"
LAUNCH = {
    "os.fork": "import os\npid = os.fork()\nif pid == 0:\n    touch()\n    os._exit(0)\nos.waitpid(pid, 0)",
    "accelerate notebook_launcher": "import accelerate\naccelerate.notebook_launcher(touch, num_processes=2)",
    "Lightning": "from lightning.fabric import Fabric\nFabric(strategy='ddp_notebook', accelerator='cpu', devices=2).launch(touch)",
}
PACKAGE = {"accelerate notebook_launcher": "accelerate", "Lightning": "lightning"}
every_launcher = pytest.mark.parametrize("launcher", LAUNCH)


def run_cells(cells: list[str], folder: Path, policy: str) -> tuple[list[str], str]:
    """What each cell raised, and the kernel's stderr."""
    needs("nbclient", "ipykernel")
    (folder / "cuda_use.py").write_text(CUDA, encoding="utf-8")
    (folder / "notebook.py").write_text(NOTEBOOK, encoding="utf-8")
    env = environment(
        CUDA_FORK_GUARD=policy, PYTHONWARNINGS="ignore::DeprecationWarning", IPYTHONDIR=str(folder / "ipython")
    )
    finished = run([sys.executable, "notebook.py"], cwd=folder, env=env, limit=110, text=json.dumps(cells)).ok(
        riddles=True
    )
    return [json.loads(line) for line in finished.lines], finished.err


def cells_for(launcher: str) -> list[str]:
    if launcher in PACKAGE:
        needs(PACKAGE[launcher])
    return ["x = 1", WAKE, LAUNCH[launcher]]


@every_launcher
def test_watch_names_the_cell_that_woke_cuda_and_the_one_that_forks(launcher: str, tmp_path: Path) -> None:
    raised, err = run_cells(cells_for(launcher), tmp_path, "watch")
    assert raised == ["", "", ""]
    found, rest = reports(err)
    assert found and "[CFG" not in rest, err
    for report in found:
        check(report, launcher)


def check(report: Report, launcher: str) -> None:
    assert report.woken.startswith("cell In[2], line 3 "), report
    assert report.forked.startswith("cell In[3], line 2"), report
    assert report.forker == launcher, report
    assert launcher == "os.fork" or "restart the kernel" in report.do, report


@every_launcher
def test_block_refuses_in_the_cell_and_says_that_only_a_restart_undoes_it(launcher: str, tmp_path: Path) -> None:
    raised, err = run_cells(cells_for(launcher), tmp_path, "block")
    assert raised[:2] == ["", ""] and raised[2].startswith("[CFG101] fork refused"), raised
    assert f"\n  forked:  cell In[3], line 2  ({launcher})\n" in raised[2], raised
    assert "\n  woken:   cell In[2], line 3  (" in raised[2], raised
    assert launcher == "os.fork" or "restart the kernel" in raised[2]
    assert "[CFG102]" not in err
