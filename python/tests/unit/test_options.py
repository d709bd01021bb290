"""The owner's choices."""

import json

import pytest

from lanner.errors import MisuseError, UnsupportedOpError
from lanner.options import CompileOptions


def test_document_has_the_agreed_members() -> None:
    document = json.loads(CompileOptions("net", classes=["a", "b"]).document())
    assert document == {
        "name": "net",
        "mode": "auto",
        "output": "label",
        "k": 1,
        "digits": 2,
        "classes": ["a", "b"],
        "image": None,
        "rounding": None,
        "input_range": None,
        "precision": None,
        "allow_imprecise": False,
    }
    assert json.loads(CompileOptions("net", input_range=(-1, 0.5)).document())["input_range"] == [-1.0, 0.5]


@pytest.mark.parametrize("output", ["label", "probability", "top-k"])
def test_policies_that_compare_need_two_scores(output: str) -> None:
    CompileOptions("net", output=output).check_scores(2)
    with pytest.raises(MisuseError, match="choose logits") as caught:
        CompileOptions("net", output=output).check_scores(1)
    assert caught.value.exit_code == 2
    CompileOptions("net", output="logits").check_scores(1)


def test_top_k_needs_k_scores() -> None:
    CompileOptions("net", output="top-k", k=10).check_scores(10)
    with pytest.raises(MisuseError, match="give 1 to 10"):
        CompileOptions("net", output="top-k", k=11).check_scores(10)


@pytest.mark.parametrize("mode", ["tabula", "spectral"])
def test_later_mode_is_unsupported(mode: str) -> None:
    with pytest.raises(UnsupportedOpError, match=mode):
        CompileOptions("net", mode=mode)


@pytest.mark.parametrize("limits", [(0.1, 1), (-1, -0.5), (0, 0), (1, 0), (0, float("inf")), (float("nan"), 1), (1,)])
def test_a_range_needs_two_ends_with_zero_between_them(limits: tuple[float, ...]) -> None:
    with pytest.raises(MisuseError, match="0 between them"):
        CompileOptions("net", input_range=limits)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change", [{"mode": "fast"}, {"rounding": "up"}, {"output": "all"}, {"k": 0}, {"digits": 0}, {"digits": 7}]
)
def test_unknown_choice_is_misuse(change: dict[str, object]) -> None:
    with pytest.raises(MisuseError):
        CompileOptions("net", **change)  # type: ignore[arg-type]
