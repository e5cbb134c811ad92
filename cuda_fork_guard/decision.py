"""What a policy asks for at one fork. A pure function: a table of cases is its test."""

from __future__ import annotations

from .fork_site import ForkSite
from .policies import BLOCK, OFF, WARN
from .values import Value

# What the child of the fork is taken for: csrc/core/fork_intent.hpp's ForkUse.
USE_UNKNOWN, USE_EXEC, USE_ALLOWED, USE_QUIET, USE_FORKSERVER = range(5)

# What is done before the fork.
PASS, RECORD, WARNING, REPORT, REFUSE = "pass", "record", "warning", "report", "refuse"


class Decision(Value):
    """``action``: PASS (nothing, not even a record), RECORD, WARNING (may raise), REPORT (never raises), REFUSE."""

    __slots__ = ("action", "use")
    action: str
    use: int


def decide(policy: int, unsafe: bool, allowed: bool, site: ForkSite) -> Decision:
    """:param unsafe: the driver is up here, or this process is inherited; False: cuInit was tried and may yet come up."""
    if policy == OFF or site.exec:
        return Decision(action=PASS, use=USE_EXEC if site.exec else USE_UNKNOWN)
    if allowed:
        return Decision(action=RECORD, use=USE_ALLOWED)
    if site.quiet:
        return Decision(action=RECORD, use=USE_QUIET)
    use = USE_FORKSERVER if site.forkserver else USE_UNKNOWN
    if not unsafe or policy not in (WARN, BLOCK):
        return Decision(action=RECORD, use=use)
    if site.supervisor or site.forkserver:
        # A refusal here can reach no caller: it would be an EOFError elsewhere, or a map() that waits for ever.
        return Decision(action=REPORT, use=use)
    return Decision(action=WARNING if policy == WARN else REFUSE, use=use)
