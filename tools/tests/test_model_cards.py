"""Every network in models/ has a card, and what the card says of the file is so."""

# ruff: noqa: D103 (the name of a test says what it shows)

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from lanner.datasets import load_digits

MODELS = Path(__file__).resolve().parents[2] / "models"
NETWORKS = sorted(MODELS.glob("*.onnx"))
SECTIONS = ["Use", "Architecture", "Data", "Training", "Accuracy", "Limits", "Licence"]


def card_of(network: Path) -> str:
    return (MODELS / "cards" / f"{network.stem}.md").read_text(encoding="utf-8")


def facts(card: str) -> dict[str, str]:
    """The table at the top of a card."""
    return dict(re.findall(r"^\| ([^|]+) \| (.+) \|$", card.split("\n## ")[0], re.MULTILINE))


def section(card: str, title: str) -> str:
    return card.split(f"\n## {title}\n")[1].split("\n## ")[0].strip()


def test_networks_and_cards_belong_together() -> None:
    assert NETWORKS
    assert {path.stem for path in (MODELS / "cards").glob("*.md")} == {path.stem for path in NETWORKS}
    readme = (MODELS / "README.md").read_text(encoding="utf-8")
    assert all(f"(cards/{path.stem}.md)" in readme for path in NETWORKS)


@pytest.mark.parametrize("network", NETWORKS, ids=lambda path: path.stem)
def test_card_is_of_this_file(network: Path) -> None:
    told, model = facts(card_of(network)), onnx.load(network)
    assert told["SHA-256"] == f"`{hashlib.sha256(network.read_bytes()).hexdigest()}`"
    assert told["file"] == f"[`{network.name}`](../{network.name}), {network.stat().st_size:,} bytes"
    weights = sum(numpy_helper.to_array(tensor).size for tensor in model.graph.initializer)
    assert told["parameters"] == f"{weights:,}"
    operators = ", ".join(node.op_type for node in model.graph.node)
    assert told["operators"] == f"{operators}, of opset {model.opset_import[0].version}"
    for fact, value in (("input", model.graph.input[0]), ("output", model.graph.output[0])):
        shape = ", ".join(axis.dim_param or str(axis.dim_value) for axis in value.type.tensor_type.shape.dim)
        assert told[fact].startswith(f"`{value.name}`")
        assert f"`({shape})`" in told[fact]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda path: path.stem)
def test_card_has_every_section(network: Path) -> None:
    card = card_of(network)
    assert re.findall(r"^## (.+)$", card, re.MULTILINE) == SECTIONS
    assert all(section(card, title) for title in SECTIONS)
    # Whoever says a figure says of how many samples, and where it is from.
    assert re.search(r"^\| data \| images \|.*\| by \|$", section(card, "Accuracy"), re.MULTILINE)


@pytest.mark.parametrize("network", NETWORKS, ids=lambda path: path.stem)
def test_figures_are_those_of_the_overview(network: Path) -> None:
    readme = (MODELS / "README.md").read_text(encoding="utf-8")
    figures = re.findall(r"\d+\.\d+%|0\.\d{4}", section(card_of(network), "Accuracy"))
    assert figures
    assert [figure for figure in figures if figure not in readme] == []


@pytest.mark.parametrize(
    "network", [path for path in NETWORKS if path.stem.startswith("mnist")], ids=lambda path: path.stem
)
def test_accuracy_on_the_digits_at_hand_is_as_told(network: Path) -> None:
    x, y = load_digits("test")
    session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
    labels = np.asarray(session.run(None, {"image": x})[0]).argmax(1)
    row = re.search(
        r"^\| scikit-learn's digits.* \| 360 \| ([\d.]+%) \|", section(card_of(network), "Accuracy"), re.MULTILINE
    )
    assert row is not None
    assert (len(y), f"{(labels == y).mean():.2%}") == (360, row[1])
