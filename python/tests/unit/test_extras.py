"""Packages that may be missing: the table against the project's own, and the sentence that says what to install."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from lanner.errors import MisuseError
from lanner.extras import EXTRAS, OPTIONAL, advice, require

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_extras_are_those_of_the_project() -> None:
    declared = {
        extra: tuple(re.split(r"[<>=!~]", package)[0] for package in packages)
        for extra, packages in PROJECT["optional-dependencies"].items()
    }
    assert declared.pop("plot") == ("lanner[plots]",)
    assert declared == EXTRAS


def test_page_of_the_installation_has_every_extra() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    rows = [row.split("|") for row in page.splitlines() if row.startswith("| `lanner[")]
    told = {extra: set(row[2].strip().split(", ")) for row in rows for extra in re.findall(r"lanner\[(\w+)\]", row[1])}
    assert told.pop("plot") == told["plots"]
    assert told == {extra: set(packages) for extra, packages in EXTRAS.items()}


def test_every_package_of_an_extra_is_told_of() -> None:
    assert {package for packages in EXTRAS.values() for package in packages} == {
        package.distribution for package in OPTIONAL.values()
    }
    for package in OPTIONAL.values():
        assert package.distribution in EXTRAS[package.extra]


def test_advice_names_packages_that_any_index_has() -> None:
    told = advice("onnx", "demo")
    assert told == "run pip install onnx onnxruntime scikit-learn, which is what lanner[onnx,demo] adds"


def test_advice_can_be_pasted_into_any_shell() -> None:
    command = advice("ray").partition(",")[0].removeprefix("run ")
    assert "'ray[data]'" in command
    assert shlex.split(command) == ["pip", "install", "ray[data]"]


def test_a_package_that_is_there_is_no_matter() -> None:
    require("onnx", "compiling")


def test_a_package_that_is_missing_is_named_with_what_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanner.extras.is_installed", lambda _: False)
    with pytest.raises(MisuseError) as caught:
        require("matplotlib", "drawing plots")
    assert str(caught.value) == (
        "drawing plots needs the package matplotlib; run pip install matplotlib, which is what lanner[plots] adds"
    )
