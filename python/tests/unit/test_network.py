"""Networks by name and by file."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanner.errors import MisuseError
from lanner.network import LOOPBACK, Network, read_network


def test_names_have_profiles() -> None:
    assert read_network("loopback") == LOOPBACK
    assert read_network("lan") == Network("lan", (1e9, 0.6e-3))
    assert read_network("wan") == Network("wan", (1e8, 40e-3))
    assert read_network("wan").describe() == "wan (100 Mbit/s, 40 ms)"


def test_a_file_describes_a_network(tmp_path: Path) -> None:
    path = tmp_path / "dsl.toml"
    path.write_text("bandwidth_bits_per_second = 16_000_000\nround_trip_seconds = 0\n")
    assert read_network(str(path)) == Network("dsl", (16e6, 0.0))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bandwidth_bits_per_second = 1e9",
        "bandwidth_bits_per_second = 1e9\nround_trip_seconds = 0.1\nlosses = 0.1",
        "bandwidth_bits_per_second = 0\nround_trip_seconds = 0.1",
        "bandwidth_bits_per_second = inf\nround_trip_seconds = 0.1",
        "bandwidth_bits_per_second = 1e9\nround_trip_seconds = -1",
        "bandwidth_bits_per_second = 1e9\nround_trip_seconds = nan",
        "bandwidth_bits_per_second = true\nround_trip_seconds = 0.1",
        "bandwidth_bits_per_second = '1e9'\nround_trip_seconds = 0.1",
        "not toml",
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(MisuseError, match=r"bad\.toml"):
        read_network(str(path))


@pytest.mark.parametrize("text", ["", "moon", "LAN", "absent.toml"])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(MisuseError):
        read_network(text)


def test_loopback_is_not_relayed() -> None:
    with LOOPBACK.between("127.0.0.1:1") as address:
        assert address == "127.0.0.1:1"
    with read_network("lan").between("127.0.0.1:1") as address:
        assert address != "127.0.0.1:1"
