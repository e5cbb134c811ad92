from __future__ import annotations

import wakes_cuda  # noqa: F401
