"""The state directory belongs to its owner alone."""

import stat
from pathlib import Path

import pytest

from lanner.errors import MisuseError
from lanner.state import state_directory


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_given_directory_wins_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANNER_HOME", str(tmp_path / "home"))
    assert state_directory(tmp_path / "given") == tmp_path / "given"
    assert state_directory() == tmp_path / "home"
    assert mode(tmp_path / "given") == mode(tmp_path / "home") == 0o700


def test_platform_directory_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANNER_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_directory().is_relative_to(tmp_path)


def test_empty_directory_is_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "open"
    path.mkdir()
    path.chmod(0o755)
    assert mode(state_directory(path)) == 0o700


def test_directory_with_contents_that_others_can_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "key.pem").write_text("")
    (tmp_path / "open").chmod(0o755)
    with pytest.raises(MisuseError, match="chmod 700"):
        state_directory(tmp_path / "open")


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MisuseError, match="this is a file"):
        state_directory(tmp_path / "file")
