"""A server asks for the open files that its sessions need, or says that it cannot have them."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import lanner as library
from helpers.processes import Finished, lanner, serving

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="open files are not counted there")

SESSIONS = 80


def allowing(limits: str) -> tuple[str, ...]:
    """A command that runs another with these limits of open files."""
    return ("/bin/sh", "-c", f'{limits} && exec "$@"', "sh")


@pytest.mark.slow
def test_sessions_need_no_more_than_the_system_grants(tmp_path: Path, tiny_label: Path) -> None:
    # Of 128 files, 80 sessions have not enough.
    within = allowing("ulimit -S -n 128")
    with (
        serving(tmp_path / "state", tiny_label, "--max-sessions", SESSIONS, within=within) as server,
        ExitStack() as stack,
    ):
        pin = str(server.document["fingerprint"])
        clients = [stack.enter_context(library.Client(server.address, pin=pin)) for _ in range(SESSIONS)]
        assert len(clients) == SESSIONS


def test_sessions_that_need_more_are_refused_in_words(tiny_label: Path) -> None:
    resource = pytest.importorskip("resource")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] == resource.RLIM_INFINITY:
        pytest.skip("this system allows any number")
    result: Finished = lanner("serve", tiny_label, "--max-sessions", 10**9)
    assert result.code == 2
    assert "1000000000 sessions at once need 2000000256 open files" in result.document["error"]["what"]
    assert "ulimit -n" in result.document["error"]["fix"]
