from __future__ import annotations

import threading


def poll() -> None:
    threading.Event().wait()


threading.Thread(target=poll, name="poller", daemon=True).start()
