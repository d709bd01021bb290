"""The owner's choices."""

import json

import pytest

from lanner.errors import MisuseError
from lanner.heads import Policy
from lanner.network import Network
from lanner.options import CompileOptions


def test_document_has_the_agreed_members() -> None:
    document = json.loads(CompileOptions("net", classes=["a", "b"]).document())
    assert document == {
        "name": "net",
        "mode": "auto",
        "output": "label",
        "k": 1,
        "digits": None,
        "classes": ["a", "b"],
        "image": None,
        "rounding": None,
        "input_range": None,
        "public_preprocessing": False,
        "precision": None,
        "kept_bits": None,
        "replace_relu": False,
        "reveal_saturation": False,
        "proved_ranges": False,
        "batch": 1,
        "allow_imprecise": False,
        "limits": {"memory": None, "seconds": None},
        "auto": {"optimize": None, "network": None, "kernels": None},
    }
    assert json.loads(CompileOptions("net", input_range=(-1, 0.5)).document())["input_range"] == [-1.0, 0.5]
    assert json.loads(CompileOptions("net", public_preprocessing=True).document())["public_preprocessing"] is True


def test_what_auto_optimizes_goes_with_auto() -> None:
    document = json.loads(CompileOptions("net", optimize="online", network=Network("wan", (1e8, 0.04))).document())
    assert document["auto"] == {"optimize": "online", "network": [1e8, 0.04], "kernels": None}
    with pytest.raises(MisuseError, match="optimize"):
        CompileOptions("net", optimize="beauty")
    with pytest.raises(MisuseError, match="only mode auto"):
        CompileOptions("net", "gazelle", optimize="bytes")


@pytest.mark.parametrize(("mode", "batch"), [("spectral", 0), ("gazelle", 12), ("cheetah", -4), ("falcon", 4)])
def test_a_batch_is_a_power_of_two_in_a_mode_that_packs(mode: str, batch: int) -> None:
    with pytest.raises(MisuseError, match="samples"):
        CompileOptions("net", mode, batch=batch)


def test_a_stated_range_is_not_that_of_preprocessed_values() -> None:
    with pytest.raises(MisuseError, match="one of the two"):
        CompileOptions("net", input_range=(0, 1), public_preprocessing=True)


def test_top_k_needs_k_scores() -> None:
    policy = Policy("top-k")
    CompileOptions("net", output="top-k", k=10).for_end(policy, 10)
    with pytest.raises(MisuseError, match="give 1 to 10") as caught:
        CompileOptions("net", output="top-k", k=11).for_end(policy, 10)
    assert caught.value.exit_code == 2


def test_classes_are_named_by_the_owner_or_else_by_the_file() -> None:
    label, value, logits = Policy("label"), Policy("value"), Policy("logits")
    options, named = CompileOptions("net"), CompileOptions("net", classes=["a", "b"])
    assert named.for_end(label, 2, ["no", "yes"]).classes == ["a", "b"]
    assert options.for_end(label, 2, ["no", "yes"]).classes == ["no", "yes"]
    # One score tells two classes apart.
    assert options.for_end(logits, 1, ["no", "yes"]).classes == ["no", "yes"]
    assert options.for_end(label, 3, ["no", "yes"]).classes is None
    assert options.for_end(value, 2, ["no", "yes"]).classes is None
    for policy, scores, what in [(label, 3, "3 classes"), (value, 2, "no classes")]:
        with pytest.raises(MisuseError, match=what):
            named.for_end(policy, scores)


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
