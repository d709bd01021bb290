"""The owner's choices."""

import argparse
import inspect
import json
from typing import Any, Unpack

import pytest

import lanner
from helpers.models import tiny_classifier, tiny_samples
from lanner.cli.arguments import add_compile_options
from lanner.errors import MisuseError
from lanner.network import Network
from lanner.options import OPTIONS, CompileKeywords, CompileOptions


def document(**chosen: Unpack[CompileKeywords]) -> dict[str, Any]:
    return dict(json.loads(CompileOptions(**chosen).document()))


def test_what_is_not_chosen_is_left_to_the_native_compiler() -> None:
    assert document(name="net") == {"name": "net"}
    assert document(name="net", k=3, classes=("a", "b"), digits=None) == {"name": "net", "k": 3, "classes": ["a", "b"]}
    assert document(input_range=(-1, 0.5)) == {"input_range": [-1.0, 0.5]}
    assert document(public_preprocessing=True, precision="1%") == {"public_preprocessing": True, "precision": "1%"}
    assert document(max_memory="1GB", max_seconds=60) == {"limits": {"memory": 10**9, "seconds": 60}}
    # These are Python's own.
    assert document(output_name="y", state_dir="/nowhere", progress=print) == {}


def test_the_networks_end_says_which_output_it_is() -> None:
    options = CompileOptions(output="label")
    assert json.loads(options.document("labels", ["a", "b"])) == {"output": "labels", "named": ["a", "b"]}


def test_every_option_is_declared_once_and_documented() -> None:
    assert [*OPTIONS] == [*CompileKeywords.__annotations__]
    documented = inspect.getdoc(lanner.compile) or ""
    parameters = inspect.signature(lanner.compile).parameters
    for name, option in OPTIONS.items():
        assert f"\n    {name}: {option.doc.split()[0]}" in documented
        assert parameters[name].default == option.default
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
    assert [*parameters] == ["model", "calibration", *OPTIONS]
    assert parameters["kept_bits"].annotation == "int | None"


def test_flags_have_the_options_names_and_are_none_where_they_are_not_given() -> None:
    parser = argparse.ArgumentParser()
    add_compile_options(parser)
    given = vars(parser.parse_args([]))
    flags = {name for name, option in OPTIONS.items() if option.flag is not None}
    assert flags == {*given} - {"calibration", "csv_header"}
    assert {*given.values()} == {None}
    found = parser.parse_args(["--kept-bits", "5", "--replace-relu", "--input-range=0,1", "--output", "value"])
    assert (found.kept_bits, found.replace_relu, found.input_range, found.output) == (5, True, (0, 1), "value")


def test_options_that_there_are_not_are_unexpected() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        lanner.compile("net.onnx", [], colour="green")  # type: ignore[call-arg]


def test_what_auto_optimizes_goes_with_auto() -> None:
    assert document(optimize="online", network=Network("wan", (1e8, 0.04))) == {
        "auto": {"optimize": "online", "network": [1e8, 0.04]}
    }
    with pytest.raises(MisuseError, match="optimize"):
        CompileOptions(optimize="beauty")
    with pytest.raises(MisuseError, match="only mode auto"):
        CompileOptions(mode="gazelle", optimize="bytes")


@pytest.mark.parametrize(("mode", "batch"), [("spectral", 0), ("gazelle", 12), ("cheetah", -4), ("falcon", 4)])
def test_a_batch_is_a_power_of_two_in_a_mode_that_packs(mode: str, batch: int) -> None:
    with pytest.raises(MisuseError, match=r"power of two|samples"):
        CompileOptions(mode=mode, batch=batch)


def test_a_stated_range_is_not_that_of_preprocessed_values() -> None:
    with pytest.raises(MisuseError, match="one of the two"):
        CompileOptions(input_range=(0, 1), public_preprocessing=True)


def test_top_k_needs_k_scores() -> None:
    with pytest.raises(MisuseError, match="k is 5, and the model has 4 scores") as caught:
        lanner.compile(tiny_classifier(), tiny_samples(), output="top-k", k=5)
    assert (caught.value.exit_code, caught.value.fix) == (2, "give 1 to 4")


def test_classes_are_named_by_the_owner_or_else_by_the_file() -> None:
    names = ["ant", "bee", "cat", "dog"]
    named = lanner.compile(tiny_classifier(), tiny_samples(), classes=names)
    assert named.manifest.classes == tuple(names)
    assert lanner.compile(tiny_classifier(), tiny_samples()).manifest.classes is None
    for output, some, what in [("label", ["ant"], "1 class names"), ("value", names, "no classes to name")]:
        with pytest.raises(MisuseError, match=what):
            lanner.compile(tiny_classifier(), tiny_samples(), output=output, classes=some)


@pytest.mark.parametrize("limits", [(0.1, 1), (-1, -0.5), (0, 0), (1, 0), (0, float("inf")), (float("nan"), 1), (1,)])
def test_a_range_needs_two_ends_with_zero_between_them(limits: tuple[float, ...]) -> None:
    with pytest.raises(MisuseError, match="0 between them"):
        CompileOptions(input_range=limits)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change", [{"mode": "fast"}, {"rounding": "up"}, {"output": "all"}, {"k": 0}, {"digits": 0}, {"digits": 7}]
)
def test_unknown_choice_is_misuse(change: dict[str, object]) -> None:
    with pytest.raises(MisuseError):
        CompileOptions(**change)  # type: ignore[arg-type]
