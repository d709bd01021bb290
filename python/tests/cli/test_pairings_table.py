"""What `lanner pairings` prints fits a terminal; `--json` has all of it."""

from __future__ import annotations

import json

import pytest

from lanner.cli import main

FINGERPRINT = f"sha256:{'5f' * 32}"


@pytest.mark.parametrize(("peer", "certificate"), [(FINGERPRINT, None), ("10.0.0.7", FINGERPRINT)])
def test_fingerprints_are_short_in_the_table_and_whole_in_json(
    peer: str, certificate: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {
        "id": "ab" * 16,
        "party": "client",
        "model": "pneumonia",
        "peer": peer,
        "certificate": certificate,
        "predictions": 1000,
        "bytes": 123_456_789,
        "created": 1_700_000_000,
        "used": 1_700_000_100,
    }
    monkeypatch.setattr("lanner.cli.pairings.pairings", lambda _: [entry])
    assert main(["pairings"]) == 0
    printed = capsys.readouterr().out
    assert FINGERPRINT not in printed
    assert FINGERPRINT[:16] in printed
    assert max(map(len, printed.splitlines())) <= 130
    assert main(["pairings", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairings"] == [entry]
