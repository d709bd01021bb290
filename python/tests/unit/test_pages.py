"""HTML pages: what a command prints, escaped, and pictures where matplotlib is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import lanner
from helpers.models import make_model, random_weights, tiny_classifier, tiny_samples
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


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A compiled model, beside typical samples, labelled ones and a single one."""
    x = tiny_samples()
    compiled = lanner.compile(tiny_classifier(), x, mode="cheetah")
    compiled.save(tmp_path / "tiny.lanner")
    np.save(tmp_path / "typical.npy", x)
    np.save(tmp_path / "x.npy", x[:1])
    np.savez(tmp_path / "labelled.npz", x=x, y=compiled.predict_float(x).argmax(1))
    return tmp_path / "tiny.lanner"


def page_of(model: Path, name: str, *arguments: object) -> str:
    """The page that a command about a model writes."""
    path = model.parent / f"{name}.html"
    assert main([name, str(model), *map(str, arguments), "--html", str(path)]) == 0
    return path.read_text(encoding="utf-8")


def test_commands_write_pages_with_pictures(model: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = model.parent
    for name, *arguments in (
        ("inspect",),
        ("estimate", "--network", "wan", "--plot", folder / "estimate.png"),
        ("debug", folder / "x.npy"),
        ("run", folder / "x.npy"),
    ):
        text = page_of(model, str(name), *arguments)
        assert text.count("<svg") == text.count("<figure>") == 1
        assert "<script" not in text
    assert (folder / "estimate.png").read_bytes().startswith(b"\x89PNG")


def test_labelled_samples_add_accuracy_by_bits_to_what_inspect_tells(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    typical = ["--calibration", str(model.parent / "typical.npy")]
    data = ["--data", str(model.parent / "labelled.npz"), "--limit", "20", *typical]
    without = page_of(model, "inspect")
    assert "with --data and --calibration" in without
    assert "lanner run --html" in without
    assert "Accuracy by the bits" not in without
    text = page_of(model, "inspect", *data)
    assert text.count("<svg") == text.count("<figure>") == 2
    assert "Accuracy by the bits" in text
    assert "20 samples" in text
    assert "with --data and --calibration" not in text
    documents = []
    for command in (["inspect", str(model), *data], ["evaluate", str(model), *data, "--bits", "4..12"]):
        capsys.readouterr()
        assert main([*command, "--json"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0]["accuracy"] == documents[1]
    assert [row["bits"] for row in documents[1]["bits"]] == list(range(4, 13))


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("tiny.lanner", ["--data", "labelled.npz"], "typical samples"),
        ("tiny.lanner", ["--bits", "4..6"], "--bits goes with --data"),
        ("tiny.lanner", ["--calibration", "typical.npy"], "--calibration goes with --data"),
        ("tiny.lanner", ["--data", "labelled.npz", "--calibration", "typical.npy", "--limit", "0"], "--limit is 0"),
        ("tiny.onnx", ["--data", "labelled.npz"], "not compiled"),
    ],
)
def test_what_inspect_cannot_measure_is_misuse(
    name: str, arguments: list[str], said: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(model.parent / name), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_the_page_of_a_run_tells_both_parties_parts(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    near = page_of(model, "run", model.parent / "x.npy")
    for told in ("server computes", "client sends", "server sends", "Both parties, step by step"):
        assert f">{told}<" in near
    assert ">on the way<" not in near
    profile = tmp_path / "far.toml"
    profile.write_text("bandwidth_bits_per_second = 1000000000\nround_trip_seconds = 0.002\n")
    far = page_of(model, "run", model.parent / "typical.npy", "--network", profile)
    assert far.count(">on the way<") == 2
    assert "The mean of" in far
    assert "far (1000 Mbit/s, 2 ms)" in far


def test_an_estimate_stands_beside_the_whole_request(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    nodes = [
        helper.make_node("Gemm", ["x", "w1"], ["a"], transB=1),
        helper.make_node("Mul", ["a", "a"], ["b"]),
        helper.make_node("Gemm", ["b", "w2"], ["y"], transB=1),
    ]
    network = make_model(nodes, (1, 6), random_weights(2, w1=(5, 6), w2=(3, 5)))
    x = np.random.default_rng(3).random((32, 6), dtype=np.float32)
    lanner.compile(network, x, mode="spectral", output="logits", batch=2).save(tmp_path / "pairs.lanner")
    np.save(tmp_path / "x.npy", x[:4])
    text = page_of(tmp_path / "pairs.lanner", "run", tmp_path / "x.npy")
    table = text[text.index("Estimate against measured") :]
    online = table[table.index("<tr><td>online</td>") :]
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", online[: online.index("</tr>")])
    assert cells[-2:] == ["1", "1"]


def test_a_page_without_matplotlib_is_refused_before_any_work(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None if name == "matplotlib" else object())
    for name, *arguments in (("inspect",), ("run", str(model.parent / "x.npy"))):
        path = model.parent / "page.html"
        assert main([name, str(model), *arguments, "--html", str(path)]) == 2
        assert "matplotlib" in capsys.readouterr().err
        assert not path.exists()
