"""HTML pages: what a command prints, escaped, and pictures where matplotlib is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lanner
from helpers.models import tiny_classifier, tiny_samples
from lanner.cli import main
from lanner.cli.output import Output
from lanner.errors import MisuseError
from lanner.pages import Page


def test_a_page_has_what_is_printed_and_no_markup_of_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(json=True)
    output.page = Page("<b>model</b>")
    output.say("a <script>alert(1)</script> & \x1b[2J")
    output.section("What each party learns", [("client", "the label"), ("nothing", None)])
    output.table(("name", "count", "empty"), [("x", 1, None), ("<y>", 2, None)], "Layers")
    output.page.write(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "&lt;b&gt;model&lt;/b&gt;" in text
    assert "<dt>client</dt><dd>the label</dd>" in text
    assert '<td>&lt;y&gt;</td><td class="number">2</td>' in text
    assert "empty" not in text
    assert "nothing" not in text
    # Nothing comes from elsewhere.
    assert "http" not in text
    assert capsys.readouterr().out == ""


def test_a_page_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="cannot be written"):
        Page("x").write(tmp_path / "nowhere" / "page.html")


def test_commands_write_pages_with_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    model = tmp_path / "tiny.lanner"
    lanner.compile(tiny_classifier(), tiny_samples(), mode="cheetah").save(model)
    np.save(tmp_path / "x.npy", tiny_samples(1))
    for name, *arguments in (
        ("inspect", str(model)),
        ("estimate", str(model), "--network", "wan", "--plot", str(tmp_path / "estimate.png")),
        ("debug", str(model), str(tmp_path / "x.npy")),
        ("run", str(model), str(tmp_path / "x.npy")),
    ):
        page = tmp_path / f"{name}.html"
        assert main([name, *arguments, "--html", str(page)]) == 0
        text = page.read_text(encoding="utf-8")
        assert text.count("<svg") == text.count("<figure>") == 1
        assert "<script" not in text
    assert (tmp_path / "estimate.png").read_bytes().startswith(b"\x89PNG")


def test_a_page_without_matplotlib_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "tiny.lanner"
    lanner.compile(tiny_classifier(), tiny_samples(), mode="cheetah").save(model)
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None if name == "matplotlib" else object())
    assert main(["inspect", str(model), "--html", str(tmp_path / "page.html")]) == 2
    assert not (tmp_path / "page.html").exists()
