"""What a prediction may take: how limits are written, and that each side refuses what is beyond its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import lanner
from helpers.models import tiny_classifier, tiny_samples
from lanner.errors import MisuseError, ModelError, PeerError
from lanner.limits import limits_document, parse_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4096", 4096), (4096, 4096), ("12GB", 12 * 10**9), ("1.5 GiB", 3 << 29), ("500MiB", 500 << 20), ("7 kB", 7000)],
)
def test_sizes_have_units(text: str | int, expected: int) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "GB", "12 gigabytes", "-1", "0", "0GB", "1e9", "12 TB", "9" * 30, "1,5GB"])
def test_other_text_is_no_size(text: str) -> None:
    with pytest.raises(MisuseError, match="not a size"):
        parse_bytes(text)


def test_limits_that_are_not_given_are_left_to_the_native_module() -> None:
    assert limits_document(None, None) == {"memory": None, "seconds": None}
    assert limits_document("1GB", 60) == {"memory": 10**9, "seconds": 60}
    with pytest.raises(MisuseError, match="max_seconds"):
        limits_document(None, 0)


def test_each_side_has_limits_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"limit: 100\.0 KB") as refused:
        lanner.compile(tiny_classifier(), tiny_samples(), max_memory=100_000)
    assert "max_memory" in refused.value.fix
    model = lanner.compile(tiny_classifier(), tiny_samples(), max_memory="1GB", max_seconds=60)
    path = tmp_path / "tiny.lanner"
    model.save(path)
    with pytest.raises(ModelError, match=r"limit: 100\.0 KB"):
        lanner.load(path, max_memory=100_000)
    with lanner.Server(lanner.load(path), state_dir=tmp_path) as server:
        with pytest.raises(PeerError, match=r"limit: 100\.0 KB") as beyond:
            lanner.Client(server.address, pin=server.fingerprint, max_memory=100_000)
        assert "max_memory" in beyond.value.fix
        with lanner.Client(server.address, pin=server.fingerprint) as client:
            assert client.predict(tiny_samples(1)[0]).label is not None
