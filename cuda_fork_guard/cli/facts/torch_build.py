"""Which torch is installed and what it was built for, read from its files: importing it would take seconds."""

from __future__ import annotations

import ast
import os
import sys
from importlib.util import find_spec


def torch_build() -> dict[str, object] | None:
    """None: not installed."""
    try:
        spec = find_spec("torch")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    folder = os.path.dirname(spec.origin)
    values = assignments(os.path.join(folder, "version.py"))
    return {
        "version": values.get("__version__"),
        "cuda": values.get("cuda"),
        "hip": values.get("hip"),
        "path": folder,
        "loaded": "torch" in sys.modules,
        "cuda_initialized": _initialized(),
    }


def _initialized() -> bool | None:
    """torch's own flag, if torch is here. It says nothing of other libraries, nor of a mere query of the driver."""
    cuda = sys.modules.get("torch.cuda")
    ask = getattr(cuda, "is_initialized", None)
    return bool(ask()) if ask is not None else None


def assignments(path: str) -> dict[str, str | None]:
    """Names that a module sets to a string or None at its top level, without running it."""
    try:
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return {}
    found: dict[str, str | None] = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            targets: list[ast.expr] = [node.target]
        elif isinstance(node, ast.Assign):
            targets = node.targets
        else:
            continue
        if isinstance(node.value, ast.Constant) and (node.value.value is None or isinstance(node.value.value, str)):
            found.update({target.id: node.value.value for target in targets if isinstance(target, ast.Name)})
    return found
