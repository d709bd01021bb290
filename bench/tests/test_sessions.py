"""What sessions cost a server, measured with few of a small network."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.sessions import sessions
from lanner.benchmarks.cases import cases
from lanner.options import Protocols

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells what a process has")


@pytest.mark.slow
def test_costs_are_those_of_sessions_predictions_and_stock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.sessions.BUSY", 2)
    monkeypatch.setattr("bench.sessions.PREDICTIONS", 2)
    monkeypatch.setattr("bench.sessions.PIECES", 3)
    (case,) = (case for case in cases("networks", "gazelle") if case.name == "mnist_c")
    costs = sessions(case, Protocols("gazelle"), 4)
    assert (costs.name, costs.mode, costs.sessions) == ("mnist_c", "gazelle", 4)
    # A session has a thread, its connection, and the connection's other half for what is written.
    assert costs.idle_threads == pytest.approx(1, abs=0.5)
    assert costs.idle_descriptors == pytest.approx(2, abs=0.5)
    # Evaluation keys cross the wire packed, and take more in memory than there; a pairing keeps what was sent.
    assert costs.idle > costs.setup_received > 10 * costs.setup_sent
    assert costs.uploaded is not None
    assert costs.resumed is not None
    assert costs.piece is not None
    assert costs.client_piece is not None
    assert costs.pairing == pytest.approx(costs.uploaded, rel=0.01)
    assert costs.pairing == pytest.approx(costs.setup_received, rel=0.05)
    # One session that resumes has none of them before it needs them.
    assert costs.resumed < costs.idle / 4
    # A garbled layer is the tables at the client, and labels at the server.
    assert costs.client_piece > costs.piece > 0
    assert costs.offline_sent > costs.online_sent > costs.online_received > 0
    assert costs.offline_seconds + costs.online_seconds > 0
    assert costs.setup_seconds > 0
