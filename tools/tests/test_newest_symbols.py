"""What wheels ask of glibc: the sentences that readelf prints, and a module of this machine."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import newest_symbols

PRINTED = """
Version needs section '.gnu.version_r' contains 2 entries:
  000000: Version: 1  File: libc.so.6  Cnt: 3
  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 4
  0x0020:   Name: GLIBC_2.28  Flags: none  Version: 3
  0x0030:   Name: GLIBC_2.2.5  Flags: none  Version: 2
  0x0040: Version: 1  File: libgcc_s.so.1  Cnt: 1
  0x0050:   Name: GCC_3.0  Flags: none  Version: 5
"""


def test_versions_are_compared_as_numbers() -> None:
    assert newest_symbols.newest(PRINTED) == (2, 28)
    assert newest_symbols.newest("") == ()


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("lanner-1-cp311-abi3-manylinux_2_28_aarch64.whl", (2, 28)),
        ("lanner-1-cp311-abi3-manylinux_2_17_x86_64.manylinux_2_28_x86_64.whl", (2, 17)),
        ("lanner-1-cp311-abi3-win_amd64.whl", ()),
    ],
)
def test_a_name_promises_the_oldest_glibc(name: str, version: tuple[int, ...]) -> None:
    assert newest_symbols.promised(name) == version


@pytest.mark.skipif(shutil.which("readelf") is None, reason="there is no readelf")
@pytest.mark.parametrize(("name", "fits"), [("manylinux_2_999", True), ("manylinux_2_1", False)])
def test_a_module_of_this_machine_is_read(
    tmp_path: Path, name: str, fits: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import lanner._native

    wheel = tmp_path / f"lanner-1-cp311-abi3-{name}_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(lanner._native.__file__, "lanner/_native.so")
    monkeypatch.setattr(sys, "argv", ["newest_symbols.py", str(wheel)])
    assert newest_symbols.main() == (0 if fits else 1)
    told = capsys.readouterr()
    assert "asks for glibc 2." in told.out
    assert ("its name promises 2.1\n" in told.err) is not fits
