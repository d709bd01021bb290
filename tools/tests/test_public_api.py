"""The page of the public interface against the code, and that the page would show a change."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import argparse

import public_api
import pytest

import lanner
import lanner.ray
from lanner.cli import parser as command_line
from lanner.cli import serve


def test_page_is_what_the_code_has() -> None:
    written = public_api.PAGE.read_text(encoding="utf-8")
    assert written == public_api.page(), "run `python tools/public_api.py --write`, and tell of it in CHANGELOG.md"


def test_every_public_name_and_command_has_a_section() -> None:
    headings = {line for line in public_api.page().splitlines() if line.startswith("### ")}
    names = {f"### `{module.__name__}.{name}`" for module in (lanner, lanner.ray) for name in module.__all__}
    commands = {f"### `lanner {module.NAME}`" for module in command_line.COMMANDS}
    assert headings == names | commands


def test_a_new_option_changes_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    before, add = public_api.page(), serve.add_arguments

    def add_one_more(parser: argparse.ArgumentParser) -> None:
        add(parser)
        parser.add_argument("--colour", metavar="C", required=True, help="a colour")

    monkeypatch.setattr(serve, "add_arguments", add_one_more)
    assert set(public_api.page().splitlines()) - set(before.splitlines()) == {"- `--colour C` (required)"}


def test_a_new_argument_of_a_method_changes_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    before = public_api.page()

    def stop(self: lanner.Server, drain_seconds: float = 10.0, *, loudly: bool = False) -> None:
        raise NotImplementedError

    monkeypatch.setattr(lanner.Server, "stop", stop)
    (line,) = set(public_api.page().splitlines()) - set(before.splitlines())
    assert line == "    stop(drain_seconds: float = 10.0, *, loudly: bool = False) -> None"


def test_attributes_are_those_of_the_docstring() -> None:
    assert public_api.documented_attributes(lanner.Client) == ["address", "manifest", "sessions"]
    assert public_api.documented_attributes(lanner.InputError) == []
