"""The child program: runs one check on one library, and prints what it returned as the last line of stdout."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    module, function, library, arguments = sys.argv[1:]
    check = getattr(importlib.import_module(module), function)
    print(json.dumps(check(library, *json.loads(arguments))), flush=True)
