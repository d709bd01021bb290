"""When a server gives back the memory of sessions that ended."""

from __future__ import annotations

import pytest

from lanner.cli.memory import EndedSessions


def test_memory_is_given_back_once_after_a_while_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []
    given_back: list[int] = []
    monkeypatch.setattr("lanner.cli.memory.give_back_freed", lambda: given_back.append(len(heard)))
    ended = EndedSessions(2)
    for count in [0, 0, 0, 3, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0]:
        ended.look(count)
        heard.append(count)
    # Not before any ended, not while others end, and once for each pause.
    assert given_back == [7, 13]
