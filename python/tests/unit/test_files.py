"""Paths that lead to no file, in words."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

import lanner
from helpers.models import tiny_classifier, tiny_samples
from lanner.errors import InputError, MisuseError, ModelError
from lanner.files import check_file, check_target, why, write_whole


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
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(MisuseError, match="this is a device, a pipe or a socket, and a file is needed; name a file"):
        check_file(tmp_path / "fifo", MisuseError)


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    (tmp_path / "leading").symlink_to(tmp_path / "no" / "file")
    (tmp_path / "itself").symlink_to("itself")
    os.mkfifo(tmp_path / "fifo")
    check_target(tmp_path / "there", MisuseError)
    check_target(tmp_path / "new", MisuseError)
    for name, told in (
        (".", "this is a folder; name the file to write"),
        ("no/file", "no: there is no such folder to write to; create it first"),
        ("there/file", "there: there is no such folder to write to; create it first"),
        ("leading", "no: there is no such folder to write to; create it first"),
        ("itself", "cannot be written \\(Too many levels of symbolic links\\); name another file"),
        ("fifo", "this is a device, a pipe or a socket, and a file is written; name a file"),
    ):
        with pytest.raises(InputError, match=told):
            check_target(tmp_path / name, InputError)


def test_what_has_the_name_is_kept_until_a_file_is_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="link: cannot be written \\(No space left on device\\)"):
            write_whole(tmp_path / "link", "new", InputError)
    assert (tmp_path / "file").read_text() == "old"
    write_whole(tmp_path / "link", "new", InputError)
    assert ((tmp_path / "link").readlink(), (tmp_path / "file").read_text()) == (Path("file"), "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_a_model_takes_the_place_of_files_alone(tmp_path: Path) -> None:
    model = lanner.compile(tiny_classifier(), tiny_samples())
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("file")
    for write in (model.save, model.export_public):
        with pytest.raises(ModelError, match="this is a device, a pipe or a socket, and a file is written"):
            write(tmp_path / "fifo")
        write(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "fifo").is_fifo()


def test_reasons_are_no_words_of_python(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"ab\xff")
    with pytest.raises(UnicodeDecodeError) as text:
        (tmp_path / "odd").read_text(encoding="utf-8")
    assert why(text.value) == "byte 2 is not text in UTF-8"
    with pytest.raises(OSError, match="Errno") as system:
        (tmp_path / "absent").read_text()
    assert why(system.value) == "No such file or directory"
    assert why(ValueError("two\nlines")) == "two lines"


def test_a_model_is_saved_and_not_pickled(tiny_label: Path) -> None:
    with pytest.raises(lanner.MisuseError, match=r"save it with `Model.save`"):
        pickle.dumps(lanner.load(tiny_label))
