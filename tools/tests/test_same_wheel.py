"""The comparison of wheels against small made-up ones, and that `make wheel` asks for what it needs."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path

import same_wheel

ROOT = Path(__file__).resolve().parents[2]


def make_wheel(folder: Path, files: dict[str, str], year: int = 1980) -> Path:
    folder.mkdir()
    path = folder / "some-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), text)
    return path


def told(tmp_path: Path, other: Path) -> list[str]:
    first = make_wheel(tmp_path / "first", {"a.py": "a = 1\n", "b.py": "b = 1\n"})
    return [*same_wheel.differences(first, other)]


def test_equal_wheels_have_no_difference(tmp_path: Path) -> None:
    assert told(tmp_path, make_wheel(tmp_path / "second", {"a.py": "a = 1\n", "b.py": "b = 1\n"})) == []


def test_files_that_differ_are_named(tmp_path: Path) -> None:
    other = make_wheel(tmp_path / "second", {"a.py": "a = 2\n", "b.py": "b = 1\n", "c.py": ""})
    assert told(tmp_path, other) == ["c.py is in one of them alone", "a.py differs"]


def test_other_dates_are_a_difference(tmp_path: Path) -> None:
    (sentence,) = told(tmp_path, make_wheel(tmp_path / "second", {"a.py": "a = 1\n", "b.py": "b = 1\n"}, year=2024))
    assert "dates" in sentence


def test_wheel_has_no_bill_with_a_date_of_its_own() -> None:
    maturin = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["maturin"]
    assert maturin["sbom"] == {"rust": False}
    assert (maturin["strip"], maturin["locked"]) == (True, True)


def test_make_wheel_hides_this_machine() -> None:
    # What make would run, read by the shell that would run it.
    make, bash = shutil.which("make"), shutil.which("bash")
    assert make is not None
    assert bash is not None
    listed = subprocess.run([make, "--dry-run", "wheel"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (build,) = re.findall(r"^(SOURCE_DATE_EPOCH=.*maturin build.*)$", listed.replace("\\\n", " "), re.MULTILINE)
    settings = build.split(".venv/bin/maturin")[0]
    shown = subprocess.run([bash, "-c", f"{settings} env"], capture_output=True, text=True, check=True).stdout
    flags = re.findall(r"^CARGO_ENCODED_RUSTFLAGS=(.*)$", shown, re.MULTILINE)[0].split("\x1f")
    assert flags[0] == f"--remap-path-prefix={ROOT}=/lanner"
    assert re.fullmatch(r"--remap-path-prefix=/.+=/cargo", flags[1])
    assert re.search(r"^SOURCE_DATE_EPOCH=315532800$", shown, re.MULTILINE)
    assert "--locked" in build
    assert "--sbom-include target/sbom/lanner.cdx.json" in build
