"""Usage errors of ``python -m bench`` are those of ``lanner``: one document, exit code 2."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import SUITES, main, parse
from bench.cases import cases
from lanner.cli.bench import command_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["layers"],
        ["sessions", "--ray", "local"],
        ["estimates", "--ray", "local"],
        ["imagenet", "--sessions", "3"],
        ["throughput", "--ray", "local", "--network", "lan"],
        ["throughput", "--repeat", "0"],
        ["throughput", "--kept-bits", "5", "--mode", "gazelle"],
        ["imagenet", "--only", "absent"],
    ],
    ids=" ".join,
)
def test_misuse_exits_2_with_a_document(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--json"]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["error"]["kind"] == "misuse"


def test_too_few_sessions_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "--mode", "falcon", "--sessions", "2", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["what"] == "--sessions is 2"


def test_the_command_that_is_kept_measures_the_same_again() -> None:
    options = parse(["sessions", "--mode", "tabula", "--kept-bits", "5", "--sessions", "9", "--only", "mnist_c"])
    told = command_of(options)
    assert told == "python -m bench sessions --mode tabula --kept-bits 5 --only mnist_c --sessions 9"
    again = parse(told.split()[3:])
    assert {**vars(again), "parser": None} == {**vars(options), "parser": None}


def test_every_command_of_the_documents_is_understood() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "Makefile"]
    commands = [
        words.split()
        for page in pages
        for words in re.findall(r"^[ \t]*(?:\S+/)?python -m bench ([^`|\n]+)", page.read_text("utf-8"), re.MULTILINE)
    ]
    assert {command[0] for command in commands} == set(SUITES)
    for command in commands:
        parse(command)


def test_networks_that_take_minutes_are_for_the_modes_that_carry_them() -> None:
    assert {case.suite for case in cases("imagenet", "cheetah")} == {"imagenet"}
    assert cases("imagenet", "gazelle") == []
    assert {case.weights for case in cases("recurrent", "cheetah")} == {"trained"}


def test_a_checkout_runs_it() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "bench", "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert all(suite in told for suite in SUITES)
