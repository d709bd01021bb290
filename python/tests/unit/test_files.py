"""Paths that lead to no file, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanner.errors import InputError, MisuseError
from lanner.files import check_file, why


def test_a_file_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    check_file(tmp_path / "there", MisuseError)


def test_what_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent: no such file; check the path"):
        check_file(tmp_path / "absent", InputError)
    with pytest.raises(MisuseError, match="this is a folder, and a file is needed"):
        check_file(tmp_path, MisuseError)
    with pytest.raises(MisuseError, match="cannot be read \\(File name too long\\)"):
        check_file(tmp_path / ("a" * 5000), MisuseError)


def test_reasons_are_no_words_of_python(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"ab\xff")
    with pytest.raises(UnicodeDecodeError) as text:
        (tmp_path / "odd").read_text(encoding="utf-8")
    assert why(text.value) == "byte 2 is no text in UTF-8"
    with pytest.raises(OSError, match="Errno") as system:
        (tmp_path / "absent").read_text()
    assert why(system.value) == "No such file or directory"
    assert why(ValueError("two\nlines")) == "two lines"
