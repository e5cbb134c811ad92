"""Events from the native module's rows."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

from cuda_fork_guard import event_log
from cuda_fork_guard.event_log import KINDS, Event

FORKED = "4242\x1ftrain.py:41 in main  (torch DataLoader, from pid 4200)\x1fMainThread, pin_memory"


def read(counts: tuple[int, ...], own: bool, *rows: tuple[int, int, int, float, str]) -> event_log.Events:
    module: Any = SimpleNamespace(events=lambda: (counts, own, rows))
    return event_log.read(module)


def test_nothing_without_a_native_module() -> None:
    events = event_log.read(None)
    assert events == () and events.dropped == 0
    assert events.counts == dict.fromkeys(KINDS, 0)


def test_the_maker_of_the_ring_counts_exactly_and_says_what_was_dropped() -> None:
    events = read((300, 1, 0, 0, 2, 0), True, (7, 0, 4200, 1.5, FORKED), (8, 4, 4200, 2.5, FORKED))
    assert events.counts == {
        "fork": 300,
        "origin": 1,
        "touch": 0,
        "worker": 0,
        "allowed": 2,
        "end": 0,
    }
    assert events.dropped == 301
    assert [event.kind for event in events] == ["fork", "allowed"]
    assert (events[0].pid, events[0].time) == (4200, 1.5)


def test_a_child_counts_what_it_sees() -> None:
    events = read((300, 1, 0, 0, 2, 0), False, (7, 2, 4242, 1.5, "report"))
    assert events.counts == {**dict.fromkeys(KINDS, 0), "touch": 1}
    assert events.dropped == 0


def test_a_fork_reads_as_a_sentence() -> None:
    text = read((1, 0, 0, 0, 0, 0), True, (0, 0, 4200, 1.5, FORKED))[0].text
    assert (
        text
        == "forked pid 4242: train.py:41 in main  (torch DataLoader, from pid 4200); threads: MainThread, pin_memory"
    )
    bare = read((1, 0, 0, 0, 0, 0), True, (0, 0, 4200, 1.5, "4242\x1funknown\x1f"))[0].text
    assert bare == "forked pid 4242: unknown"


def test_a_text_without_fields_is_left_alone() -> None:
    for text in ("", "no fields", "a\x1fb"):
        assert read((1, 0, 0, 0, 0, 0), True, (0, 0, 1, 1.0, text))[0].text == text
    # Not a fork's: its own business, whatever is in it.
    assert read((0, 0, 1, 0, 0, 0), True, (0, 2, 1, 1.0, "a\x1fb\x1fc"))[0].text == "a\x1fb\x1fc"


def test_an_event_is_readable_and_crosses_processes() -> None:
    event = Event(kind="touch", pid=4242, time=1.5, text="CUDA used")
    assert str(event) == "[touch] pid 4242: CUDA used"
    events = read((1, 0, 0, 0, 0, 0), True, (0, 0, 4200, 1.5, FORKED))
    back = pickle.loads(pickle.dumps(events))
    assert back == events and back.counts == events.counts and back.dropped == events.dropped
    assert isinstance(events, tuple)
