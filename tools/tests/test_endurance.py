"""The trials of tools/endurance in small, and that what they look for would be found."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import os
import sqlite3
import struct
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from endurance import clients, clock, disk, kill, links, private_keys, silent, soak, timing
from endurance.page import page, saved
from endurance.processes import slope, usage
from endurance.records import History
from endurance.relay import Link, Trouble, relay
from endurance.trial import Trial
from endurance.trials import TRIALS
from endurance.wire import KEPT_NAME, names_used

from lanner.cli.memory import SETTINGS
from lanner.cli.serve import LOG_SECONDS, QUIET_LOOKS
from lanner.heap import live_bytes

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a file system is mounted")

#: Scales at which a trial takes seconds.
SMALL = {clients: 0.1, soak: 0.004, kill: 0.02, links: 0.05, silent: 0.1, clock: 1, disk: 1, private_keys: 1}


DOCS = Path(__file__).resolve().parents[2] / "docs"


def document(trial: Trial, name: str) -> dict[str, object]:
    machine = {"processor": "p", "cores": 2, "memory_bytes": 1 << 33, "system": "s", "python": "3", "lanner": "0"}
    run = {"name": name, "date": "2026-01-01", "commit": "c", "seconds": 1.0, "machine": machine}
    return {**run, **trial.document()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", [clients, clock, kill, links, private_keys, silent], ids=lambda module: module.__name__
)
def test_trials_hold(tmp_path: Path, module: ModuleType) -> None:
    check_holds(tmp_path, module)


@pytest.mark.slow
def test_a_soak_makes_every_prediction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "MODES", ("cheetah",))
    monkeypatch.setattr(soak, "SESSIONS", 4)
    trial = Trial(tmp_path, SMALL[soak])
    soak.run(trial)
    # So short a run says nothing of memory.
    missed = [check.claim for check in trial.checks if not check.held and "growth" not in check.claim]
    assert not missed


@pytest.mark.slow
@needs_root
def test_a_full_disk_of_the_client_loses_nothing(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    disk.run(trial)
    assert not [check for check in trial.checks if not check.held and check.claim.startswith("client's")]


def check_holds(folder: Path, module: ModuleType) -> None:
    trial = Trial(folder, SMALL[module])
    module.run(trial)
    assert trial.checks
    assert not [check for check in trial.checks if not check.held]


def test_a_missed_bound_is_a_missed_trial() -> None:
    trial = Trial(Path())
    assert trial.verdict == "left out"
    trial.most("It is small", 1, 2, "bytes")
    assert trial.verdict == "held"
    trial.none("There is none", ["one"])
    assert trial.verdict == "missed"
    assert [check.held for check in trial.checks] == [True, False]


def test_the_page_tells_every_claim_and_what_was_left_out() -> None:
    trial = Trial(Path(), counts={"deaths": 1234}, left_out=["what | wants root"])
    trial.equal("Labels | are equal", 1, 2)
    text = page([document(trial, name) for name in TRIALS])
    assert "1,234" in text
    assert "| Labels \\| are equal | 1 | 2 | **no** |" in text
    assert "Left out: what | wants root." in text
    assert text.count("\n## ") == len(TRIALS)


def test_the_page_has_one_table_of_many_parts_and_marks_what_missed() -> None:
    few, many = Trial(Path(), counts={"a: tried": 7}), Trial(Path())
    for place in range(5):
        many.counts[f"part{place}: tried"] = 1000 + place
        many.check(f"part{place}: crashes", place, 0, place == 0)
    many.equal("All parts run", 5, 5)
    text = page([document(few, "kill"), document(many, "fuzz")])
    assert "| a: tried | 7 |" in text
    assert "| part | tried |\n| --- | ---: |\n| part0 | 1,000 |\n| part1 | 1,001 |" in text
    assert "| part | crashes (bound: 0) |\n| --- | ---: |\n| part0 | 0 |\n| part1 | 1 **no** |" in text
    assert "| All parts run | 5 | 5 | yes |" in text


def test_the_page_leaves_out_a_count_that_a_claim_repeats() -> None:
    trial = Trial(Path(), counts={"tried": 7, "kept": 3})
    trial.check("tried", 7, "more than 0", held=True)
    text = page([document(trial, "fuzz")])
    assert "| kept | 3 |" in text
    assert text.count("| tried |") == 1


def test_the_page_has_a_column_for_each_of_a_few_parts() -> None:
    trial = Trial(Path())
    for mode in ("x", "y", "z"):
        trial.equal(f"{mode}: errors", 1 if mode == "z" else 0, 0)
    assert (
        "| claim | x | y | z | bound |\n| --- | ---: | ---: | ---: | ---: |\n| errors | 0 | 0 | 1 **no** | 0 |"
        in page([document(trial, "soak")])
    )


def test_a_scale_runs_a_part_and_never_more_than_all() -> None:
    assert [Trial(Path(), scale).scaled(200, 10) for scale in (0.001, 0.5, 3)] == [10, 100, 200]


def test_growth_is_the_slope_of_what_was_measured() -> None:
    assert slope([(0, 5), (10, 25), (20, 45)]) == pytest.approx(2)
    assert slope([(0, 5), (10, 5), (20, 5)]) == 0


def test_memory_and_descriptors_of_a_process_are_told() -> None:
    before, held = usage(os.getpid()), bytearray(os.urandom(32 << 20))
    with Path(__file__).open(encoding="utf-8"):
        after = usage(os.getpid())
    assert after.descriptors == before.descriptors + 1
    assert after.resident - before.resident > len(held) / 2


def test_live_bytes_are_those_that_were_not_freed() -> None:
    before = live_bytes()
    if before is None:
        pytest.skip("this C library does not tell")
    kept = [bytes(size) for size in (600, 100_000, 32 << 20)]
    held = live_bytes()
    assert held is not None
    assert held - before > 32 << 20
    del kept
    after = live_bytes()
    assert after is not None
    assert abs(after - before) < soak.GROWTH * 2**20 / 4


def test_the_soak_looks_when_a_server_has_given_memory_back() -> None:
    assert soak.GIVEN_BACK > (QUIET_LOOKS + 1) * LOG_SECONDS


def test_parts_that_are_not_run_are_those_of_the_record_before(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"claim": "b: is small", "measured": "1", "bound": "at most 2", "held": True}
    before = {"commit": "old", "counts": {"a: n": 1, "b: n": 2}, "checks": [{**kept, "claim": "a: is small"}, kept]}
    monkeypatch.setenv("PARTS", "c,a")
    trial = Trial(Path(), before=before)
    assert trial.chosen(("a", "b", "c"), "PARTS") == ["a", "c"]
    assert trial.counts == {"b: at commit": "old", "b: n": 2}
    assert trial.document()["checks"] == [kept]
    # What was taken over keeps its own commit.
    again = Trial(Path(), before={"commit": "new", **trial.document()})
    again.chosen(("a", "b"), "PARTS_OF_NONE")
    assert not again.checks
    monkeypatch.setenv("PARTS", "a")
    again.chosen(("a", "b"), "PARTS")
    assert again.counts["b: at commit"] == "old"


def test_a_part_that_never_ran_or_does_not_exist_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTS", "a")
    trial = Trial(Path())
    trial.chosen(("a", "b"), "PARTS")
    assert [(check.claim, check.held) for check in trial.checks] == [("b: is run", False)]
    monkeypatch.setenv("PARTS", "a,z")
    with pytest.raises(ValueError, match="PARTS names 'z'"):
        trial.chosen(("a", "b"), "PARTS")


def test_the_soaks_client_is_set_up_as_the_page_tells_and_as_a_gateway() -> None:
    page = DOCS / "how-to" / "keep-a-client-running.md"
    _, *settings = soak.LONG_RUNNING
    assert f"{' '.join(settings)} python " in page.read_text(encoding="utf-8")
    assert [int(setting.split("=")[1]) for setting in settings] == list(SETTINGS.values())


def test_names_on_the_wire_are_read_and_half_a_frame_is_not() -> None:
    def frame(kind: int, payload: bytes) -> bytes:
        return struct.pack("<IH", len(payload), kind) + payload

    names = [bytes([number]) * 16 for number in (1, 2)]
    stream = frame(7, b"hello") + b"".join(frame(KEPT_NAME, name) for name in names)
    assert names_used([stream, stream[:-1]]) == [names[0].hex(), names[1].hex(), names[0].hex()]


def test_a_name_that_comes_back_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "material").mkdir()
    history = History(tmp_path, "client")
    with sqlite3.connect(tmp_path / "material" / "index") as index:
        index.execute("CREATE TABLE material (party INTEGER, id BLOB, state INTEGER)")
        index.executemany("INSERT INTO material VALUES (0, ?, ?)", [(b"\x01", 1), (b"\x02", 2)])
        index.commit()
        history.look()
        assert (history.used(), history.returned) == ({"02"}, [])
        index.execute("UPDATE material SET state = 1")
        index.commit()
    history.look()
    assert len(history.returned) == 1


def test_a_relay_carries_both_ways_and_flips_one_bit() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        for link, expected in ((Link(), b"hello"), (Link(trouble=Trouble.FLIP, at=1), b"hdllo")):
            with relay(address, link) as way:
                host, port = way.address.split(":")
                with socket.create_connection((host, int(port)), timeout=10) as client:
                    connection, _ = server.accept()
                    with connection:
                        client.sendall(b"hello")
                        assert connection.recv(5, socket.MSG_WAITALL) == expected
                        connection.sendall(b"back")
                        assert client.recv(4, socket.MSG_WAITALL) == b"back"
            assert way.streams == [bytearray(b"hello")]


def test_keys_are_found_and_hashes_are_not() -> None:
    key = b"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0\n"
    token = b"token = ghp_" + b"a1B2" * 9
    assert list(private_keys.found_in(key, words=False)) == ["a private key in PEM"]
    assert list(private_keys.found_in(token, words=False)) == ["a token of GitHub"]
    assert not list(private_keys.found_in(b"sha256 " + b"0123456789abcdef" * 4, words=True))


def test_operations_whose_time_tells_of_secrets_are_found(tmp_path: Path) -> None:
    def operation(name: str, t: float, leaks: bool) -> dict[str, Any]:
        return {"operation": name, "t": t, "limit": 4.5, "measurements": 1000, "leaks": leaks}

    planted = operation("a branch", -80.0, leaks=True)
    for operations, verdict in (
        ([planted, operation("sums", -2.0, leaks=False)], "held"),
        ([planted, operation("sums", -5.0, leaks=False)], "missed"),
        ([operation("a branch", 2.0, leaks=True), operation("sums", 0.0, leaks=False)], "missed"),
        ([operation("sums", 0.0, leaks=False)], "missed"),
        ([], "missed"),
    ):
        trial = Trial(tmp_path)
        timing.judge(trial, operations)
        assert trial.verdict == verdict, operations


def test_the_page_is_that_of_the_saved_documents() -> None:
    documents = saved(DOCS / "reliability")
    assert documents
    assert (DOCS / "reliability.md").read_text(encoding="utf-8") == page(documents)
