"""Torch refuses CUDA in a forked child by itself, before the driver is reached, so the tripwire would not see it.

Torch asks itself ``torch.cuda._is_in_bad_fork()``. In an inherited child, and only there, that question is observed:
it counts when ``_lazy_init`` asks it and the answer is yes. ``is_initialized()`` and the like ask too, and use nothing.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_QUESTION = "_is_in_bad_fork"
_ASKER = "_lazy_init"


def observe(refused: Callable[[FrameType | None], None]) -> str:
    """Calls ``refused`` with ``_lazy_init``'s frame at the first refusal. Returns why that can't be seen, or "".

    Torch that is imported only after the fork needs none of this: it knows of no fork, and goes to the driver.
    """
    cuda = sys.modules.get("torch.cuda")
    if cuda is None:
        return ""
    question = getattr(cuda, _QUESTION, None)
    code = getattr(getattr(cuda, _ASKER, None), "__code__", None)
    if not callable(question) or code is None:
        version = getattr(sys.modules.get("torch"), "__version__", "of unknown version")
        return f"torch {version} has no {_QUESTION}: its own refusals can't be seen"

    def observed() -> bool:
        answer = bool(question())
        frame = sys._getframe(1)
        if answer and frame.f_code is code:
            setattr(cuda, _QUESTION, question)  # once is enough, and the module is torch's again
            refused(frame)
        return answer

    setattr(cuda, _QUESTION, observed)
    return ""
