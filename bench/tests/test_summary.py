"""The page of what matters: a row for each network in its fastest mode, figures with their build, nothing else."""

from __future__ import annotations

from typing import Any

from bench.summary import summary

MACHINE = {
    "processor": "Test CPU",
    "cores": 2,
    "features": ["aes"],
    "memory_bytes": 8_000_000_000,
    "system": "Linux",
    "python": "3.11",
    "lanner": "9.9.9",
}


def phases(name: str, mode: str, seconds: float, network: str = "loopback", **others: object) -> list[dict[str, Any]]:
    return [
        {
            "suite": "networks",
            "name": name,
            "mode": mode,
            "rounding": "exact",
            "network": network,
            "phase": phase,
            "seconds": seconds,
            "bytes": 7_000_000,
            "rounds": 3,
            "weights": "trained",
            "paper": None,
            **others,
        }
        for phase in ("setup", "offline", "online", "total")
    ]


def document(*rows: list[dict[str, Any]], lanner: str = "9.9.9", **others: object) -> dict[str, Any]:
    everything = [row for group in rows for row in group]
    return {"machine": {**MACHINE, "lanner": lanner}, "loads": [0.1], "rows": everything, "failures": [], **others}


def lines(text: str, *words: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|") and all(word in line for word in words)]


def test_a_network_is_listed_in_its_fastest_exact_mode_with_its_build() -> None:
    elsewhere = document(phases("resnet32", "falcon", 0.1), lanner="9.9.10")
    slow, fast = phases("resnet32", "cheetah", 0.5), phases("resnet32", "cheetah", 0.01, rounding="faithful")
    (row,) = lines(summary(document(slow, fast, elsewhere=[elsewhere])), "resnet32")
    assert "| `falcon` | 100 ms | 100 ms | 100 ms | 7.00 MB | 3 | trained | 9.9.10 |" in row


def test_rows_of_an_older_build_carry_its_commit() -> None:
    text = summary(document(phases("mnist_d", "gazelle", 0.5, build="abc1234"), phases("mnist_d", "tabula", 0.7)))
    (old,) = lines(text, "`gazelle` | loopback")
    (new,) = lines(text, "`tabula` | loopback")
    assert old.endswith("| 9.9.9, abc1234 |")
    assert new.endswith("| 9.9.9 |")


def test_a_paper_is_beside_the_link_that_it_measured() -> None:
    paper = {"source": "Known", "place": "table 1, on a WAN", "seconds": 1.0, "bytes": 14_000_000}
    far, near = (
        phases("lstm", "cheetah", seconds, link, paper=paper) for link, seconds in (("wan", 0.5), ("lan", 0.1))
    )
    for given in ((far, near), (near, far)):
        (row,) = lines(summary(document(*given)), "Known")
        assert "| wan |" in row
        assert "| 500 ms | 2.00x | 7.00 MB | 2.00x |" in row


def test_another_system_has_no_ratio_to_itself() -> None:
    system = {"seconds": 2.0, "bytes": 10_000_000, "error": 0.5}
    ours = {**system, "system": "lanner", "seconds": 0.5}
    peers = {"machine": MACHINE, "rows": [{"name": "mnist_d", "systems": [ours, {**system, "system": "Other"}]}]}
    text = summary(document(peers=peers))
    (row,) = lines(text, "| lanner |")
    assert "| 4.00x | 1.00x |" in row
    (other,) = lines(text, "| Other |")
    assert other.endswith("| - | - | - |")
