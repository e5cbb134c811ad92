from __future__ import annotations

import there_is_no_such_module  # noqa: F401
